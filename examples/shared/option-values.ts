import { InvalidArgumentError } from 'commander';

/** A parser of a number in a range, for commander. */
export function number(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === '' ? NaN : Number(text);
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
  };
}

/** The same for a whole number. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  const inRange = number(min, max);
  return (text) => {
    const value = inRange(text);
    if (Number.isInteger(value)) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}
