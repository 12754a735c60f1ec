import { SpanStatusCode, type Span } from '@opentelemetry/api';
import { guarded } from '../../metrics/guarded.ts';
import { errorText } from '../handler-errors.ts';
import { ATTRIBUTE } from './span-attributes.ts';

/** What the conventions say where an error has no class. */
const OTHER = '_OTHER';

/** Says what has failed. Whatever was thrown may throw again when it is looked at: that is no reason to lose the span. */
export function recordError(span: Span, error: unknown): void {
  const text = errorText(error);
  span.setStatus({ code: SpanStatusCode.ERROR, message: text });
  guarded(() => {
    span.setAttribute(ATTRIBUTE.errorType, typeOf(error));
    span.recordException(error instanceof Error ? error : text);
  });
}

/** Of few kinds: its code, else its class. */
function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return OTHER;
  const { code, name } = error as { code?: unknown; name: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' && name !== '' ? name : OTHER;
}
