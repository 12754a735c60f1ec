import fc from 'fast-check';

/** A code point that is not a surrogate: the unit 'binary' of fast-check, whose construction alone takes three seconds. */
export const anyCharacter = fc
  .oneof(fc.nat(0x7f), fc.nat(0xd7ff), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((codePoint) => String.fromCodePoint(codePoint));
