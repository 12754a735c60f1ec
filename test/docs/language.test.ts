import ts from 'typescript';
import { expect, test } from 'vitest';
import { EXPORTED_NAMES, sourceOf } from './exported-names.ts';
import { ALLOWED } from './language-exceptions.ts';
import { filesIn, read } from './read.ts';

/** What to avoid in text that users read, and what to write instead. CONTRIBUTING.md has the rules. */
const RULES: readonly (readonly [pattern: string, instead: string])[] = [
  ['who|whom|whoever|whomever|somebody|someone|nobody|anybody|everybody', 'the name of the part: the caller'],
  ['tells?|told|asks?|asked|says?|said', 'a part returns, reports, notifies, reads, requests'],
  ["(?:can|do|does|is|are|was|were|wo|would|should|could|has|have|did)n't", 'no contraction'],
  ["(?:it|that|there|what|here|let)'s|(?:we|you|they)'(?:re|ve|ll)", 'no contraction'],
  ['homes?|eras?|hand-?outs?|ledgers?|moments?', 'owner, epoch, delivery, size accounting, timestamp'],
  ['(?<!there )(?:is|are|be|was) none|what is no', 'is not a valid …; if there is none'],
  ['gone|now and then|in earnest|as ever|in the same breath', 'closed, removed, expired; no idiom'],
  [
    'knows?|look(?:s|ed|ing)? (?:after|inside|at|for)|see to|what waits|things? that waits?',
    'inspect, check for, manage; pending operation',
  ],
];

const PATTERN = new RegExp(RULES.map(([pattern]) => `\\b(?:${pattern})\\b`).join('|'), 'gi');

/** A page without names in code and addresses of links. Its blocks of code stay: their comments are text, too. */
function proseOf(page: string): string {
  return read(page)
    .replaceAll(/^```\w*$/gm, '')
    .replaceAll(/`[^`\n]*`|\]\([^)]*\)/g, '_');
}

/** The texts of a program that users read: string literals of several words, and the docstrings of what the package exports. */
function textsOf(path: string): string {
  const source = sourceOf(path);
  const texts: string[] = [];
  const addMessages = (node: ts.Node): void => {
    const isText =
      ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
    if (isText && node.text.includes(' ') && !isLua(node.text)) texts.push(node.text);
    ts.forEachChild(node, addMessages);
  };
  const addDocstrings = (node: ts.Node): void => {
    if (isHidden(node)) return;
    texts.push(...ts.getJSDocCommentsAndTags(node).map((doc) => doc.getText()));
    if (ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node)) node.members.forEach(addDocstrings);
  };
  addMessages(source);
  for (const statement of source.statements) {
    if (namesOf(statement).some((name) => EXPORTED_NAMES.get(path)?.has(name))) addDocstrings(statement);
  }
  return texts.join('\n').replaceAll(/`[^`\n]*`/g, '_');
}

/** The names of the tests of a file, and of their groups. */
function testNamesOf(path: string): string {
  const names: string[] = [];
  const addNames = (node: ts.Node): void => {
    const name = ts.isCallExpression(node) && isTest(node.expression) ? node.arguments[0] : undefined;
    if (name !== undefined && ts.isStringLiteralLike(name)) names.push(name.text);
    if (name !== undefined && ts.isTemplateExpression(name))
      names.push(
        [name.head, ...name.templateSpans.map(({ literal }) => literal)].map(({ text }) => text).join('_'),
      );
    ts.forEachChild(node, addNames);
  };
  addNames(sourceOf(path));
  return names.join('\n').replaceAll(/`[^`\n]*`/g, '_');
}

/** Whether a function is `test`, `it` or `describe`, or one of theirs: `test.each(rows)`. */
function isTest(callee: ts.Expression): boolean {
  if (ts.isIdentifier(callee)) return ['test', 'it', 'describe'].includes(callee.text);
  return (ts.isPropertyAccessExpression(callee) || ts.isCallExpression(callee)) && isTest(callee.expression);
}

/** What a statement declares. */
function namesOf(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  const isNamed =
    ts.isClassDeclaration(statement) ||
    ts.isFunctionDeclaration(statement) ||
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement);
  return isNamed && statement.name !== undefined ? [statement.name.text] : [];
}

/** A member that users cannot call, or that is marked as internal. */
function isHidden(node: ts.Node): boolean {
  const isPrivate = ts.isClassElement(node) && node.name !== undefined && ts.isPrivateIdentifier(node.name);
  return isPrivate || ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal');
}

/** Scripts for Redis. */
function isLua(text: string): boolean {
  return /\bredis\.call\(|\blocal [\w, ]+=/.test(text);
}

const PAGES = [
  ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...[...filesIn('docs', '.md'), ...filesIn('examples', '.md')],
];
const TESTS = filesIn('test', '.ts').filter((path) => !path.includes('/node_modules/'));
const PROGRAMS = [...filesIn('src', '.ts'), ...filesIn('examples', '.ts')];

/** What the rules find in a file, with some of the text around it. */
function findingsIn(path: string): string[] {
  if (read(path).search(PATTERN) === -1) return []; // parsing a program takes longer than reading it
  const textIn = path.endsWith('.md') ? proseOf : path.startsWith('test/') ? testNamesOf : textsOf;
  const text = textIn(path).replaceAll(/\s+/g, ' ');
  return [...text.matchAll(PATTERN)].map(({ index, 0: word }) => {
    return text.slice(Math.max(0, index - 40), index + word.length + 40);
  });
}

function isAllowed(path: string, finding: string): boolean {
  return ALLOWED.some(([file, words]) => file === path && finding.includes(words));
}

test('README, documents, messages, help texts and names of tests are plain English', () => {
  const findings = [...PAGES, ...PROGRAMS, ...TESTS].flatMap((path) => {
    const found = findingsIn(path).filter((finding) => !isAllowed(path, finding));
    return found.map((finding) => `${path}: … ${finding} …`);
  });
  const advice = `Write ${RULES.map(([pattern, instead]) => `${instead} (not ${pattern})`).join('\n')}`;
  expect(findings, advice).toEqual([]);
});

test('every exception to plain English is used', () => {
  const unused = ALLOWED.filter(
    ([file, words]) => !findingsIn(file).some((finding) => finding.includes(words)),
  );
  expect(unused).toEqual([]);
});
