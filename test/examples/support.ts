/** Columns of the widest line: an example fits a terminal of 80. */
export function widthOf(printed: string): number {
  return Math.max(...printed.split('\n').map((line) => line.length));
}
