import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { ALLOWED } from './language-exceptions.ts';

const ROOT = join(import.meta.dirname, '../..');

/** What to avoid in text that users read, and what to write instead. CONTRIBUTING.md has the rules. */
const RULES: readonly (readonly [pattern: string, instead: string])[] = [
  ['who|whom|whoever|whomever|somebody|someone|nobody|anybody|everybody', 'the name of the part: the caller'],
  ['tells?|told|asks?|asked|says?|said', 'a part returns, reports, notifies, reads, requests'],
  ["(?:can|do|does|is|are|was|were|wo|would|should|could|has|have|did)n't", 'no contraction'],
  ["(?:it|that|there|what|here|let)'s|(?:we|you|they)'(?:re|ve|ll)", 'no contraction'],
  ['homes?|eras?|hand-?outs?|ledgers?|moments?', 'owner, epoch, delivery, size accounting, timestamp'],
  ['(?<!there )(?:is|are|be|was) none|what is no', 'is not a valid …; if there is none'],
  [
    '(?:is|are) gone|now and then|in earnest|as ever|in the same breath',
    'closed, removed, expired; no idiom',
  ],
  [
    'look(?:s|ed|ing)? (?:after|inside|at)|see to|what waits|things? that waits?',
    'inspect, manage; pending operation',
  ],
];

const PATTERN = new RegExp(RULES.map(([pattern]) => `\\b(?:${pattern})\\b`).join('|'), 'gi');

/** The files below a folder whose names end so. */
function filesIn(folder: string, ending: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith(ending) && !/^(api|node_modules)\b/.test(name))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`);
}

/** A page without code. */
function proseOf(page: string): string {
  return read(page)
    .replaceAll(/^```[^]*?^```/gm, '')
    .replaceAll(/`[^`\n]*`|\]\([^)]*\)/g, '_');
}

/** The string literals of a program that have several words: messages and help texts. */
function messagesOf(path: string): string {
  const messages: string[] = [];
  const visit = (node: ts.Node): void => {
    const isText =
      ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
    if (isText && node.text.includes(' ')) messages.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest));
  return messages.join('\n');
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

const PAGES = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...filesIn('docs', '.md')];
const PROGRAMS = [...filesIn('src', '.ts'), ...filesIn('examples', '.ts')];

/** What the rules find in a file, with some of the text around it. */
function findingsIn(path: string): string[] {
  if (read(path).search(PATTERN) === -1) return []; // parsing a program takes longer than reading it
  const text = (path.endsWith('.md') ? proseOf(path) : messagesOf(path)).replaceAll(/\s+/g, ' ');
  return [...text.matchAll(PATTERN)].map(({ index, 0: word }) => {
    return text.slice(Math.max(0, index - 40), index + word.length + 40);
  });
}

function isAllowed(path: string, finding: string): boolean {
  return ALLOWED.some(([file, words]) => file === path && finding.includes(words));
}

test('README, documents, messages and help texts are plain English', () => {
  const findings = [...PAGES, ...PROGRAMS].flatMap((path) => {
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
