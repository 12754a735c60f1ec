const CODES = { red: 31, green: 32, yellow: 33 } as const;

export type Colour = keyof typeof CODES;

/** Text in a colour, for a terminal that has them. */
export function paint(text: string, colour: Colour, hasColours: boolean): string {
  return hasColours ? `\u001b[${CODES[colour]}m${text}\u001b[39m` : text;
}
