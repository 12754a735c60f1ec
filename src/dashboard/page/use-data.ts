import { useEffect, useState } from 'preact/hooks';
import { Failure, getChanged, isRefused, messageOfError } from './api.ts';
import { checkLogin, onLive } from './live.ts';

interface Reading<T> {
  readonly path: string;
  readonly data?: T;
  readonly error?: string;
  /** HTTP status of the error; 0 without a response. */
  readonly status?: number;
}

/** What a page shows: nothing yet, data, or an error beside the data that was read before. */
export interface Data<T> extends Reading<T> {
  /** Reads now. */
  readonly reload: () => void;
}

/**
 * Reads a path of the API, and reads it again at every live event, one request at a time. What was read for another path is not
 * shown; an error keeps the data that was read before it.
 */
export function useData<T>(path: string): Data<T> {
  const [reading, setReading] = useState<Reading<T>>({ path });
  const [reads, setReads] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    let isReading = false;
    let etag = '';
    const read = async (): Promise<void> => {
      if (isReading) return;
      isReading = true;
      try {
        const changed = await getChanged<T>(path, etag, leaving.signal);
        if (changed === undefined) return;
        etag = changed.etag;
        setReading({ path, data: changed.data });
      } catch (error) {
        if (leaving.signal.aborted) return;
        if (isRefused(error)) void checkLogin();
        etag = ''; // the next reading replaces the error
        setReading((before) => ({
          ...(before.path === path ? before : { path }),
          error: messageOfError(error),
          status: error instanceof Failure ? error.status : 0,
        }));
      } finally {
        isReading = false;
      }
    };
    void read();
    const stop = onLive(({ status }) => {
      if (status !== 'expired') void read();
    });
    return () => {
      stop();
      leaving.abort();
    };
  }, [path, reads]);
  const reload = (): void => setReads((count) => count + 1);
  return { ...(reading.path === path ? reading : { path }), reload };
}
