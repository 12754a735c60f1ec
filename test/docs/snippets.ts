import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '');

/** One ```ts block of a page. */
export interface Snippet {
  /** Page and line, as an editor takes it. */
  readonly where: string;
  readonly source: string;
  /** What the block says that it prints, a line each: the comments that start with an arrow. */
  readonly prints: string[];
}

/** Every TypeScript block of README.md, CONTRIBUTING.md and docs/. */
export function readSnippets(): Snippet[] {
  const pages = readdirSync(`${ROOT}/docs`).filter((name) => name.endsWith('.md'));
  return ['README.md', 'CONTRIBUTING.md', ...pages.map((name) => `docs/${name}`)].flatMap(snippetsOf);
}

function snippetsOf(page: string): Snippet[] {
  const text = readFileSync(`${ROOT}/${page}`, 'utf8');
  return [...text.matchAll(/^```ts\n(.*?)^```/gms)].map((match) => {
    const source = match[1] ?? '';
    const line = text.slice(0, match.index).split('\n').length;
    const prints = [...source.matchAll(/\/\/ → (.*)$/gm)].map(([, printed = '']) => printed);
    return { where: `${page}:${line}`, source, prints };
  });
}

/** Whether the block is a file of tests. */
export function isTest({ source }: Snippet): boolean {
  return source.includes(`from 'vitest'`);
}

/** The block as a program that Node runs. */
export function transpile({ source }: Snippet): string {
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(source, { compilerOptions }).outputText;
}

/** What the compiler says of all blocks under the strict settings of this project, each as a file of its own. */
export function typeErrors(snippets: readonly Snippet[]): string[] {
  const config: unknown = ts.readConfigFile(`${ROOT}/tsconfig.json`, (path) => ts.sys.readFile(path)).config;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const files = new Map(snippets.map((snippet, i) => [`${ROOT}/snippet-${i}.ts`, snippet]));
  const host = hostWith(files, { ...options, moduleDetection: ts.ModuleDetectionKind.Force });
  const program = ts.createProgram([...files.keys()], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    const where = files.get(file?.fileName ?? '')?.where ?? file?.fileName ?? 'tsconfig.json';
    return `${where}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}

/** The compiler's own view of the disk, and the blocks on it as if they were files. */
function hostWith(files: ReadonlyMap<string, Snippet>, options: ts.CompilerOptions): ts.CompilerHost {
  const disk = ts.createCompilerHost(options);
  return {
    ...disk,
    fileExists: (name) => files.has(name) || disk.fileExists(name),
    readFile: (name) => files.get(name)?.source ?? disk.readFile(name),
    getSourceFile: (name, languageVersion, ...rest) => {
      const snippet = files.get(name);
      if (snippet === undefined) return disk.getSourceFile(name, languageVersion, ...rest);
      return ts.createSourceFile(name, snippet.source, languageVersion);
    },
  };
}
