import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

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

/** The block as a program that Node runs. */
export function transpile({ source }: Snippet): string {
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(source, { compilerOptions }).outputText;
}

/** What the compiler says of all blocks under the strict settings of this project, each as a file of its own. */
export function typeErrors(snippets: readonly Snippet[]): string[] {
  const config = ts.getParsedCommandLineOfConfigFile(`${ROOT}/tsconfig.json`, {}, {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: (diagnostic) => {
      throw new Error(String(diagnostic.messageText));
    },
  });
  if (config === undefined) throw new Error('tsconfig.json cannot be read');
  const files = new Map(snippets.map((snippet, i) => [`${ROOT}/snippet-${i}.ts`, snippet]));
  const options = { ...config.options, noUnusedLocals: false, moduleDetection: ts.ModuleDetectionKind.Force };
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile } = host;
  host.fileExists = (name) => files.has(name) || fileExists.call(host, name);
  host.readFile = (name) => files.get(name)?.source ?? readFile.call(host, name);
  host.getSourceFile = (name, languageVersion, ...rest) => {
    const snippet = files.get(name);
    if (snippet === undefined) return getSourceFile.call(host, name, languageVersion, ...rest);
    return ts.createSourceFile(name, snippet.source, languageVersion);
  };
  const diagnostics = ts.getPreEmitDiagnostics(ts.createProgram([...files.keys()], options, host));
  return diagnostics.map(({ file, messageText }) => {
    const where = file === undefined ? 'options' : (files.get(file.fileName)?.where ?? file.fileName);
    return `${where}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}
