const NS_PER_MS = 1e6;

/** Milliseconds on a clock that all processes of this machine share, so that their times can be compared. */
export function machineNowMs(): number {
  return Number(process.hrtime.bigint()) / NS_PER_MS;
}
