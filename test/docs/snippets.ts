import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '');

/** One block of TypeScript or JavaScript of a page. */
export interface Snippet {
  /** Page and line, as an editor takes it. */
  readonly where: string;
  readonly page: string;
  /** The heading that it is under. */
  readonly heading: string;
  readonly language: 'ts' | 'js';
  /** The file that the page names above it, if it does so. */
  readonly file: string | undefined;
  readonly source: string;
  /** What the block says that it prints, a line each: the comments that start with an arrow. */
  readonly prints: string[];
}

/** Pages whose files `new-reader.slow.test.ts` saves and runs. */
export const READ_PAGES: readonly string[] = ['docs/getting-started.md', 'docs/recipes.md'];

/** What the fragments of docs/dashboard.md leave to the reader. */
const SLOTS = `import { dashboard, type DashboardOptions } from 'escapement/dashboard';
import type { Broker } from 'escapement/tasks';
declare const broker: Broker;
declare const authorize: NonNullable<DashboardOptions['authorize']>;`;

/** Blocks of which a framework is a part, by page and heading, with what the type checker needs in front of each. */
export const WITH_FRAMEWORKS = {
  'docs/dashboard.md': {
    Express: `${SLOTS} import express from 'express'; const app = express();`,
    Fastify: `${SLOTS} import fastify from 'fastify'; const app = fastify();`,
    Koa: `${SLOTS} import Koa from 'koa'; const app = new Koa();`,
    Hono: `${SLOTS} import { Hono } from 'hono'; const app = new Hono();`,
    'Next.js': SLOTS,
    'Bun and Deno': `${SLOTS} type Fetch = (request: Request) => Promise<Response>;
declare const Bun: { serve(options: { port: number; idleTimeout: number; fetch: Fetch }): void };
declare const Deno: { serve(options: { port: number }, fetch: Fetch): void };`,
  },
  'docs/recipes.md': {
    Express: '',
    Fastify: `declare module 'fastify' { interface FastifyRequest { deadline: any } }`,
    Hono: '',
    'Next.js': '',
    NestJS: '',
  },
  'docs/testing.md': { jest: 'declare const jest: any, test: any, expect: any;' },
} as const;

/** What comes in front of a block for the type checker; undefined if the block is not one with a framework. */
function preludeOf({ page, heading }: Snippet): string | undefined {
  const preludes: Readonly<Record<string, Readonly<Record<string, string>>>> = WITH_FRAMEWORKS;
  return preludes[page]?.[heading];
}

/** Every block of TypeScript and JavaScript of README.md, CONTRIBUTING.md and docs/, except code of other libraries: `// before`. */
export function readSnippets(): Snippet[] {
  const pages = readdirSync(`${ROOT}/docs`).filter((name) => name.endsWith('.md'));
  const names = ['README.md', 'CONTRIBUTING.md', ...pages.map((name) => `docs/${name}`)];
  return names.flatMap(snippetsOf).filter(({ source }) => !source.startsWith('// before\n'));
}

/** The blocks of a page under a heading. */
export function snippetsUnder(page: string, heading: string): Snippet[] {
  return snippetsOf(page).filter((snippet) => snippet.heading === heading);
}

function snippetsOf(page: string): Snippet[] {
  const text = readFileSync(`${ROOT}/${page}`, 'utf8');
  return [...text.matchAll(/^```(ts|typescript|js|javascript|mjs)\n(.*?)^```/gms)].map((match) => {
    const [, language = '', source = ''] = match;
    const above = text.slice(0, match.index);
    return {
      where: `${page}:${above.split('\n').length}`,
      page,
      heading: [...above.matchAll(/^#+ (.+)$/gm)].at(-1)?.[1] ?? '',
      language: language.startsWith('t') ? 'ts' : 'js',
      file: /`([\w./]+\.m?js)`:\s*$/.exec(above)?.[1],
      source,
      prints: [...source.matchAll(/\/\/ → (.*)$/gm)].map(([, printed = '']) => printed),
    };
  });
}

const isTyped = ({ language }: Snippet): boolean => language === 'ts';

/** What runs a block: undefined if nothing does. */
export function runnerOf(snippet: Snippet): 'framework' | 'reader' | 'test' | 'program' | undefined {
  if (preludeOf(snippet) !== undefined) return 'framework';
  if (isTyped(snippet)) return snippet.source.includes(`from 'vitest'`) ? 'test' : 'program';
  const isRead = snippet.file !== undefined && READ_PAGES.includes(snippet.page);
  return isRead ? 'reader' : undefined;
}

/** The block as a program, or as a module of CommonJS, that Node runs. */
export function transpile({ source }: Snippet, type: 'module' | 'commonjs' = 'module'): string {
  const module = type === 'module' ? ts.ModuleKind.ESNext : ts.ModuleKind.CommonJS;
  const compilerOptions = { module, target: ts.ScriptTarget.ES2022, ...COMPILED };
  return ts.transpileModule(source, { compilerOptions }).outputText;
}

/** What a compiled program may have and this project does not: parameter properties, and the decorators of parameters of NestJS. */
const COMPILED = { experimentalDecorators: true, erasableSyntaxOnly: false };

/** For JavaScript, as `// @ts-check` has it. */
const LOOSE: ts.CompilerOptions = {
  strict: false,
  noPropertyAccessFromIndexSignature: false,
  exactOptionalPropertyTypes: false,
  noUnusedLocals: false,
  noUnusedParameters: false,
};

/** What only an annotation could mend: JSON, and the address of a server. */
const NEEDS_ANNOTATION = /o[nf] type '(unknown|\{\}|string \| AddressInfo)'/;

/**
 * What the compiler reports of all blocks under the strict settings of this project, of JavaScript under looser ones: each is a file of
 * its own beside the files of its page, in the folder where the frameworks are installed.
 */
export function typeErrors(snippets: readonly Snippet[]): string[] {
  const config: unknown = ts.readConfigFile(`${ROOT}/tsconfig.json`, (path) => ts.sys.readFile(path)).config;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const [typescript, javascript] = [
    snippets.filter(isTyped),
    snippets.filter((snippet) => !isTyped(snippet)),
  ];
  const loose = errorsOf(javascript, { ...options, ...LOOSE });
  return [...errorsOf(typescript, options), ...loose.filter((error) => !NEEDS_ANNOTATION.test(error))];
}

function errorsOf(snippets: readonly Snippet[], project: ts.CompilerOptions): string[] {
  const options = { ...project, ...COMPILED, moduleDetection: ts.ModuleDetectionKind.Force };
  const files = new Map<string, Snippet>();
  snippets.forEach((snippet, i) => {
    const folder = `${ROOT}/test/dashboard/snippets/${snippet.page}`;
    const path = `${folder}/${snippet.file?.replace(/js$/, 'ts') ?? ''}`;
    files.set(snippet.file === undefined || files.has(path) ? `${folder}/snippet-${i}.ts` : path, snippet);
  });
  const program = ts.createProgram([...files.keys()], options, hostWith(files, options));
  const wrong = [...files.keys()].flatMap((name) =>
    ts.getPreEmitDiagnostics(program, program.getSourceFile(name)),
  );
  return wrong.map(({ file, messageText }) => {
    const where = files.get(file?.fileName ?? '')?.where ?? file?.fileName ?? 'tsconfig.json';
    return `${where}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}

/** Declarations that were parsed: those of libraries and frameworks are most of the work, and two programs need them. */
const parsed = new Map<string, ts.SourceFile | undefined>();

/** The compiler's own view of the disk, and the blocks on it as if they were files. */
function hostWith(files: ReadonlyMap<string, Snippet>, options: ts.CompilerOptions): ts.CompilerHost {
  const disk = ts.createCompilerHost(options);
  const sourceOf = (snippet: Snippet): string => `${preludeOf(snippet) ?? ''}\n${snippet.source}`;
  return {
    ...disk,
    directoryExists: () => true,
    fileExists: (name) => files.has(name) || disk.fileExists(name),
    getSourceFile: (name, languageVersion, ...rest) => {
      const snippet = files.get(name);
      if (snippet !== undefined) return ts.createSourceFile(name, sourceOf(snippet), languageVersion);
      if (!parsed.has(name)) parsed.set(name, disk.getSourceFile(name, languageVersion, ...rest));
      return parsed.get(name);
    },
  };
}
