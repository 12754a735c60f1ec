import type { Context, TextMapGetter, TextMapPropagator, TextMapSetter } from '@opentelemetry/api';
import { guarded } from '../../core/report-uncaught.ts';

type Headers = Readonly<Record<string, string>>;

/** Names come from the client that has enqueued the task: inherited properties are not headers. */
const getter: TextMapGetter<Headers> = {
  keys: (headers) => Object.keys(headers),
  get: (headers, name) => (Object.hasOwn(headers, name) ? headers[name] : undefined),
};

const setter: TextMapSetter<Map<string, string>> = {
  set: (carrier, name, value) => {
    carrier.set(name, value);
  },
};

/**
 * Returns the headers with which a task carries a context; they are added to the headers it has.
 *
 * A task that is enqueued again may have the headers of another trace: those are set to '', since headers can only be overridden. If
 * a context cannot be written, for example its baggage, the task is enqueued without it.
 */
export function headersOf(context: Context, propagator: TextMapPropagator, present: Headers): Headers {
  const carrier = new Map<string, string>();
  guarded(() => {
    propagator.inject(context, carrier, setter);
  });
  if (carrier.size > 0) {
    for (const name of propagator.fields()) {
      if (Object.hasOwn(present, name) && !carrier.has(name)) carrier.set(name, '');
    }
  }
  return Object.fromEntries(carrier);
}

/** Returns `base` with the context that a task carries; `base` itself if there is none, or if it cannot be read. */
export function contextOf(base: Context, propagator: TextMapPropagator, headers: Headers): Context {
  let context = base;
  guarded(() => {
    context = propagator.extract(base, headers, getter);
  });
  return context;
}
