/** Deliberate uses of words that language.test.ts avoids: the file, and words around the finding. */
export const ALLOWED: readonly (readonly [file: string, words: string])[] = [
  ['CONTRIBUTING.md', 'nobody holds it'],
  ['CONTRIBUTING.md', 'tell, ask or say'],
];
