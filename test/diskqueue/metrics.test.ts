import { ManualClock } from 'escapement';
import { describe, expect, test } from 'vitest';
import { RecordingMetrics } from '../metrics/recording-metrics.ts';
import { until } from '../until.ts';
import { damagedFolder, LEFT } from './support/damage.ts';
import { RecordingFiles } from './support/recording-files.ts';
import { uncaughtErrors } from '../uncaught-errors.ts';
import {
  bytes,
  DATA,
  drain,
  FORMATS,
  openQueue,
  putAll,
  receiveMany,
  rejection,
  settled,
  temporaryFolder,
} from './support/queues.ts';

describe.each(FORMATS)('%s', (format) => {
  test('metrics carry the name of the queue', async () => {
    const metrics = new RecordingMetrics();
    await openQueue({ format, metrics, name: 'mine' });
    expect(metrics.labels).toHaveLength(7);
    for (const labels of metrics.labels) expect(labels).toEqual({ queue: 'mine' });
  });

  test('the gauges of depth and bytes are read on demand, until the queue is closed', async () => {
    const metrics = new RecordingMetrics();
    const dataPath = temporaryFolder();
    const queue = await openQueue({ format, metrics, dataPath });
    expect(metrics.gauges()).toEqual({ diskqueue_depth: 0, diskqueue_bytes: 0 });
    await putAll(queue, ['12345', '678', '']);
    expect(metrics.gauges()).toEqual({ diskqueue_depth: 3, diskqueue_bytes: 8 });
    const [first] = await receiveMany(queue, 2);
    expect(metrics.gauges()).toEqual({ diskqueue_depth: 3, diskqueue_bytes: 8 });
    first?.ack();
    expect(metrics.gauges()).toEqual({ diskqueue_depth: 2, diskqueue_bytes: 3 });
    await queue.close();
    expect(metrics.gauges()).toEqual({});
    const again = new RecordingMetrics();
    const reopened = await openQueue({ format, metrics: again, dataPath });
    expect(again.gauges()).toEqual({ diskqueue_depth: 2, diskqueue_bytes: 3 });
    await reopened.empty();
    expect(again.gauges()).toEqual({ diskqueue_depth: 0, diskqueue_bytes: 0 });
    await reopened.delete();
    expect(again.gauges()).toEqual({});
  });

  test('puts and acknowledgements are counted once; rejected, returned and emptied messages are not counted', async () => {
    const [metrics, files] = [new RecordingMetrics(), new RecordingFiles()];
    const queue = await openQueue({ format, metrics, files, maxMessageSize: 5, maxBytesTotal: 20 });
    await putAll(queue, ['a', 'b', 'c', 'd']);
    await rejection(queue.put(bytes('too long')));
    files.fail('write', { part: DATA[format] });
    await rejection(queue.put(bytes('e')));
    files.heal();
    const [a, b, c] = await receiveMany(queue, 3);
    a?.ack();
    a?.ack();
    b?.nack();
    await queue.empty();
    c?.ack();
    expect(metrics.counts.get('diskqueue_puts_total')).toBe(4);
    expect(metrics.counts.get('diskqueue_acks_total')).toBe(1);
  });

  test('the duration of commits is measured on the clock, in seconds', async () => {
    const [metrics, files, clock] = [new RecordingMetrics(), new RecordingFiles(), new ManualClock()];
    const queue = await openQueue({ format, metrics, files, clock });
    await queue.put(bytes('first'));
    const gate = files.hold('sync');
    const put = putAll(queue, 'abc');
    await until('the disk is called', () => gate.waiting === 1);
    clock.advance(250);
    gate.open();
    await put;
    expect(metrics.observed.get('diskqueue_commit_duration_seconds')).toEqual([0, 0.25]);
    const buckets = metrics.buckets.get('diskqueue_commit_duration_seconds') ?? [];
    expect(buckets).toEqual([...buckets].sort((x, y) => x - y));
  });

  test('damage and lost messages are counted', async () => {
    const dataPath = await damagedFolder(format);
    const metrics = new RecordingMetrics();
    const queue = await openQueue({ format, dataPath, metrics, onCorruption: () => undefined });
    expect(await drain(queue, LEFT[format].length)).toEqual(LEFT[format]);
    expect(metrics.counts.get('diskqueue_damages_total')).toBe(1);
    const lost = { checked: 1, nsq: 0 }; // in nsq the number of lost messages is unknown
    expect(metrics.counts.get('diskqueue_lost_messages_total')).toBe(lost[format]);
    expect(metrics.gauges()).toEqual({ diskqueue_depth: 0, diskqueue_bytes: 0 });
  });

  test('gauges are removed when open fails', async () => {
    const metrics = new RecordingMetrics();
    const dataPath = temporaryFolder();
    await openQueue({ format, dataPath });
    const locked = await rejection(openQueue({ format, dataPath, metrics }));
    expect(locked).toHaveProperty('code', 'ERR_QUEUE_LOCKED');
    expect(metrics.gauges()).toEqual({});
    metrics.broken.add('diskqueue_bytes'); // the second gauge: the first is there already
    const other = openQueue({ format, dataPath: temporaryFolder(), metrics });
    expect(await rejection(other)).toMatchObject({ message: 'diskqueue_bytes is broken' });
    expect(metrics.gauges()).toEqual({});
  });

  test('errors of a metrics provider are uncaught exceptions, and stop nothing', async () => {
    const uncaught = uncaughtErrors();
    const metrics = new RecordingMetrics();
    const queue = await openQueue({ format, metrics });
    metrics.broken.add('diskqueue_puts_total').add('diskqueue_acks_total');
    await putAll(queue, 'ab');
    expect(await drain(queue)).toEqual(['a', 'b']);
    await queue.close();
    await settled();
    expect(uncaught.map(({ message }) => message)).toEqual([
      'diskqueue_puts_total is broken',
      'diskqueue_acks_total is broken',
      'diskqueue_acks_total is broken',
    ]);
  });
});
