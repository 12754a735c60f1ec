import sharp, { type Sharp } from 'sharp';
import type { ReceivedImage } from './demo-result.ts';

/** Something to send: an image, or what pretends to be one. */
export interface Sample {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly width: number;
  readonly height: number;
  readonly isBroken: boolean;
}

/** Each width of a result divides them, so that what height is right needs no rounding. */
const SHAPES = [
  [1_280, 960, 'jpeg'],
  [960, 1_280, 'png'],
  [1_920, 1_280, 'webp'],
  [960, 960, 'jpeg'],
  [1_600, 1_200, 'jpeg'],
] as const;

/** The widths that the demonstration asks for. */
export const WIDTHS = [640, 320, 160];

/** A burst of images: five good ones, and a broken one in their middle. */
export async function burstOf(customer: string): Promise<Sample[]> {
  const good = await Promise.all(
    SHAPES.map(([width, height, format], index) => goodSample(`${customer}-${index}`, width, height, format)),
  );
  return good.toSpliced(2, 0, brokenSample(customer, good[0]));
}

/** An image that is different every time. */
export async function goodSample(
  name: string,
  width: number,
  height: number,
  format: 'jpeg' | 'png' | 'webp',
): Promise<Sample> {
  const bytes = await clouds(width, height).toFormat(format).toBuffer();
  return { name: `${name}.${format}`, bytes: Uint8Array.from(bytes), width, height, isBroken: false };
}

/** What an image is, by its own bytes. */
export async function describeImage(bytes: ArrayBuffer | Uint8Array): Promise<ReceivedImage> {
  const { width, height, format } = await sharp(bytes).metadata();
  return { width, height, format };
}

/** A few random dots, blown up. */
function clouds(width: number, height: number): Sharp {
  const noise = { type: 'gaussian', mean: 128, sigma: 60 } as const;
  const dots = sharp({ create: { width: 8, height: 8, channels: 3, background: '#000', noise } });
  return dots.resize(width, height, { fit: 'fill', kernel: 'cubic' });
}

/** Ada sends a letter, all others an upload that was cut off. */
function brokenSample(customer: string, whole: Sample | undefined): Sample {
  const letter = new TextEncoder().encode('Dear Sir or Madam, my image is attached.');
  const half = whole?.bytes.slice(0, whole.bytes.length / 2) ?? letter;
  const [name, bytes] = customer === 'ada' ? ['letter.jpeg', letter] : ['cut-off.jpeg', half];
  return { name: `${customer}-${name}`, bytes, width: 0, height: 0, isBroken: true };
}
