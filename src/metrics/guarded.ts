import { reportUncaught } from '../core/report-uncaught.ts';

/** Measures; a provider that throws must not stop what is measured. */
export function guarded(measure: () => void): void {
  try {
    measure();
  } catch (error) {
    reportUncaught(error);
  }
}
