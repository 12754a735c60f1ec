import { describe, expect, it } from 'vitest';
import {
  decodeEnqueueEvent,
  decodeServer,
  encodeEnqueueEvent,
} from '../../../src/tasks/wire/member-codec.ts';
import { momentOf, msOf, secondsOf, timestampOf } from '../../../src/tasks/wire/protobuf.ts';

describe('times on the wire', () => {
  it('are rounded up to whole seconds, also those that are no whole milliseconds', () => {
    expect([0, 0.1, 1, 999, 1_000, 1_001].map(secondsOf)).toEqual([0n, 1n, 1n, 1n, 1n, 2n]);
    expect(msOf(30n)).toBe(30_000);
  });

  it('keep their milliseconds in a timestamp', () => {
    expect(timestampOf(1_700_000_000_123)).toEqual({ seconds: 1_700_000_000n, nanos: 123_000_000 });
    expect(timestampOf(0.5)).toEqual({ seconds: 0n, nanos: 1_000_000 });
    expect(decodeEnqueueEvent(encodeEnqueueEvent({ taskId: '', atMs: 1 })).atMs).toBe(1);
  });

  it("say never as Go's zero time, and read it from that or from nothing", () => {
    expect(timestampOf(0)).toEqual({ seconds: -62_135_596_800n, nanos: 0 });
    expect(decodeEnqueueEvent(encodeEnqueueEvent({ taskId: '', atMs: 0 })).atMs).toBe(0);
    expect(momentOf(undefined)).toBe(0);
  });
});

describe('the status of a server', () => {
  const withStatus = (status: string): Buffer => Buffer.from([0x3a, status.length, ...Buffer.from(status)]);

  it('is stopped while a Go server is new', () => {
    expect(decodeServer(withStatus('new')).status).toBe('stopped');
  });

  it('is refused if nobody knows it', () => {
    expect(() => decodeServer(withStatus('odd'))).toThrow("unknown status 'odd'");
  });
});
