import { wrongType } from '../core/errors.ts';

/** The host's error for an argument of the wrong type. */
export function invalidArgument(argument: string, requirement: string, value: unknown): TypeError {
  return showCode(wrongType(argument, requirement, value));
}

/** The host's error for `new` where only the host makes instances. */
export function illegalConstructor(): TypeError {
  return showCode(Object.assign(new TypeError('Illegal constructor'), { code: 'ERR_ILLEGAL_CONSTRUCTOR' }));
}

/** Programs match the code in `String(error)`, where the host's errors have it. */
function showCode<E extends TypeError & { readonly code: string }>(error: E): E {
  return Object.defineProperty(error, 'toString', {
    configurable: true,
    writable: true,
    value: () => `${error.name} [${error.code}]: ${error.message}`,
  });
}
