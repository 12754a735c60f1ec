import ts from 'typescript';
import { expect, test } from 'vitest';
import { EXPORTED_NAMES, sourceOf } from './exported-names.ts';
import { filesIn, read } from './read.ts';

/** What JSON calls, and what a broker reads. */
const NOT_CALLED = new Set(['toJSON', 'hasPayload']);

/** Whether a member is for users: neither private, nor internal, nor one that a class above has. */
function isPublic(member: ts.ClassElement | ts.TypeElement): boolean {
  if (member.name === undefined || !ts.isIdentifier(member.name)) return false;
  const flags = ts.getCombinedModifierFlags(member);
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected | ts.ModifierFlags.Override;
  return (
    (flags & hidden) === 0 && !ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal')
  );
}

/** Every method and property of an exported class, and every event, as `Class.member`. */
function membersOfSources(): string[] {
  return [...EXPORTED_NAMES].flatMap(([path, exported]) => {
    return sourceOf(path).statements.flatMap((statement) => {
      if (!ts.isClassDeclaration(statement) && !ts.isInterfaceDeclaration(statement)) return [];
      const name = statement.name?.text ?? '';
      if (!exported.has(name) || (ts.isInterfaceDeclaration(statement) && !name.endsWith('Events')))
        return [];
      const named = [...statement.members].filter(isPublic).map((member) => member.name?.getText() ?? '');
      return named.filter((member) => !NOT_CALLED.has(member)).map((member) => `${name}.${member}`);
    });
  });
}

test('README and the documents name every method, property and event of the exported classes', () => {
  const pages = filesIn('docs', '.md').filter((path) => path !== 'docs/options.md');
  const text = ['README.md', ...pages].map(read).join('\n');
  const words = new Set(text.match(/\w+/g));
  const members = membersOfSources();
  expect(members.length).toBeGreaterThan(200);
  expect(members.filter((member) => !words.has(member.split('.')[1] ?? ''))).toEqual([]);
});
