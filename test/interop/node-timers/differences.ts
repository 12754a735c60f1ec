const DEPRECATED = 'calls active, unrefActive, enroll or unenroll, which are deprecated and not here';

/** Tests of Node that fail with our functions, and why. */
export const DIFFERENT: Readonly<Record<string, string>> = {
  'parallel/test-timers-active.js': DEPRECATED,
  'parallel/test-timers-enroll-invalid-msecs.js': DEPRECATED,
  'parallel/test-timers-enroll-second-time.js': DEPRECATED,
  'parallel/test-timers-max-duration-warning.js': DEPRECATED,
  'parallel/test-timers-unenroll-unref-interval.js': DEPRECATED,
  'parallel/test-timers-unref-active.js': DEPRECATED,
  'parallel/test-timers-unref-remove-other-unref-timers-only-one-fires.js': DEPRECATED,
  'parallel/test-timers-unref-remove-other-unref-timers.js': DEPRECATED,
  'parallel/test-timers-timeout-to-interval.js':
    'makes an interval of a timeout through the internal field _repeat, which is not here',
  'parallel/test-timers.js': 'expects a delay above 2^31 - 1 to be 1; here it is honoured',
};

/** Tests of Node that pass or fail by chance with our functions, and why: they run, and are not judged. */
export const BY_CHANCE: Readonly<Record<string, string>> = {
  'parallel/test-timers-immediate-queue.js':
    'expects a timeout of 1 ms to be due after a loop of between 1 and 2 ms; the host rounds down, we round up to be never early',
};
