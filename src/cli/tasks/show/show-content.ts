import { bytesJson, shorten, showBytes } from '../../../tasks/show-bytes.ts';
import { printable } from '../../terminal/text.ts';
import type { Content } from '../target/tasks-target.ts';

/** How bytes of users are shown to people. */
export interface ContentStyle {
  /** As hex, whatever they are. */
  readonly hex?: boolean | undefined;
  /** Characters of them. */
  readonly maxLength?: number | undefined;
}

/** One line. As asynq has it: as text if all of it can be printed. */
export function showContent(content: Content | undefined, style: ContentStyle = {}): string {
  const { hex = false, maxLength = Infinity } = style;
  if (content === undefined) return '';
  if (!(content instanceof Uint8Array)) return printable(shorten(content.shown, maxLength));
  if (hex) return shorten(Buffer.from(content).toString('hex'), maxLength);
  return printable(showBytes(content, maxLength));
}

/** What a program needs to have the bytes; `shown` is what the HTTP API shows of them, and maybe not all. */
export function contentJson(
  name: 'payload' | 'taskPayload' | 'result',
  content: Content | undefined,
): Record<string, string | null> {
  const encoding = `${name}Encoding`;
  if (content === undefined) return { [name]: null, [encoding]: null };
  if (!(content instanceof Uint8Array)) return { [name]: content.shown, [encoding]: 'shown' };
  return bytesJson(name, content);
}
