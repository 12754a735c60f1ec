/** What a shipper has done since it was started. */
export interface Progress {
  /** Lines that came in and are in the spool, or were. */
  taken: number;
  forwarded: number;
  /** Requests that had to be repeated. */
  retries: number;
  /** Lines that the collector has refused; they are in a file. */
  rejected: number;
}

/** A shipper at a moment. */
export interface Status extends Readonly<Progress> {
  /** Of its process. */
  readonly pid: number;
  /** Lines in the spool. */
  readonly depth: number;
  readonly bytes: number;
}
