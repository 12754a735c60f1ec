import type { Context, TextMapGetter, TextMapPropagator, TextMapSetter } from '@opentelemetry/api';
import { guarded } from '../../core/report-uncaught.ts';

type Headers = Readonly<Record<string, string>>;

/** Names come from whoever has enqueued the task: what every object has is no header. */
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
 * What a task is to carry of a context, over the headers it has.
 *
 * A task that is passed on may have the headers of another trace: what belongs to that one is blanked, since headers can
 * only be laid over others. Baggage that cannot be written must not keep a task from being enqueued: then it goes without.
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

/** What a task carries, in a context; `base` itself if it is nothing that can be read. */
export function contextOf(base: Context, propagator: TextMapPropagator, headers: Headers): Context {
  let context = base;
  guarded(() => {
    context = propagator.extract(base, headers, getter);
  });
  return context;
}
