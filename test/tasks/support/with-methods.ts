import type { Broker } from 'escapement/tasks';

/** A broker with another's methods in place of some of its own. */
export function withMethods<B extends Broker>(broker: B, methods: Partial<Broker>): B {
  return new Proxy(broker, {
    get(target, key): unknown {
      if (Object.hasOwn(methods, key)) return methods[key as keyof Broker];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
