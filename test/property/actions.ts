import fc from 'fast-check';

/** What an arbitrary gives. */
export type ValueOf<A> = A extends fc.Arbitrary<infer Value> ? Value : never;

/** An action as data, so that a history can be replayed and shrunk: one of some kinds, and what it is done with. */
export function action<Kind extends string, Details extends object = object>(
  kinds: Kind | readonly Kind[],
  details?: { readonly [Name in keyof Details]: fc.Arbitrary<Details[Name]> },
): fc.Arbitrary<{ readonly kind: Kind } & Readonly<Details>> {
  const kind = fc.constantFrom(...[kinds].flat());
  return fc.record({ kind, ...details }) as unknown as fc.Arbitrary<
    { readonly kind: Kind } & Readonly<Details>
  >;
}

/** One of several, each as often as its weight says. */
export function weighted<Values extends readonly unknown[]>(
  ...all: { readonly [At in keyof Values]: readonly [weight: number, fc.Arbitrary<Values[At]>] }
): fc.Arbitrary<Values[number]> {
  return fc.oneof(...all.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

/** @throws Error - something that must hold in a world does not. */
export function claim(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

/** What a model does where the contract has an error of this code. */
export function failWith(code: string): never {
  throw Object.assign(new Error(code), { code });
}
