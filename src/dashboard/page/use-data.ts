import { useEffect, useState } from 'preact/hooks';
import { Failure, getJson, messageOfError } from './api.ts';
import { onLive } from './live.ts';

/** What a page shows: nothing yet, data, or an error beside the data that was read before. */
export interface Data<T> {
  readonly data?: T;
  readonly error?: string;
  /** HTTP status of the error; 0 without a response. */
  readonly status?: number;
  /** Reads now. */
  readonly reload: () => void;
}

interface Reading {
  readonly path: string;
  readonly data?: unknown;
  readonly error?: string;
  readonly status?: number;
}

/**
 * Reads a path of the API, and reads it again at every live event, one request at a time. What was read for another path is not
 * shown; an error keeps the data that was read before it.
 */
export function useData<T>(path: string, isLive = true): Data<T> {
  const [reading, setReading] = useState<Reading>({ path });
  const [reads, setReads] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    let isReading = false;
    const read = async (): Promise<void> => {
      if (isReading) return;
      isReading = true;
      try {
        const data = await getJson<T>(path, leaving.signal);
        setReading({ path, data });
      } catch (error) {
        if (leaving.signal.aborted) return;
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
    const stop = isLive ? onLive(() => void read()) : () => undefined;
    return () => {
      stop();
      leaving.abort();
    };
  }, [path, isLive, reads]);
  const current = reading.path === path ? reading : { path };
  return {
    ...(current as { data?: T; error?: string; status?: number }),
    reload: () => {
      setReads((count) => count + 1);
    },
  };
}
