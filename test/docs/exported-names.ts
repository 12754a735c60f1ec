import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { read, ROOT } from './read.ts';

export function sourceOf(path: string): ts.SourceFile {
  return ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true);
}

/** The names that an entry of the package exports, as their files declare them, by the path of the file. */
export const EXPORTED_NAMES = new Map<string, Set<string>>();
for (const entry of readdirSync(join(ROOT, 'src')).filter((name) => name.endsWith('.ts'))) {
  for (const statement of sourceOf(`src/${entry}`).statements) {
    if (!ts.isExportDeclaration(statement) || statement.moduleSpecifier === undefined) continue;
    if (statement.exportClause === undefined || !ts.isNamedExports(statement.exportClause)) continue;
    const path = `src/${(statement.moduleSpecifier as ts.StringLiteral).text.replace('./', '')}`;
    const names = EXPORTED_NAMES.get(path) ?? new Set();
    for (const { name, propertyName } of statement.exportClause.elements)
      names.add((propertyName ?? name).text);
    EXPORTED_NAMES.set(path, names);
  }
}
