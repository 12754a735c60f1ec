import { describe } from 'vitest';
import { describeBroker } from '../../../conformance/broker/describe-broker.ts';
import { stubborn } from '../../../conformance/broker/stubborn.ts';
import { redisSetup } from './setup.ts';

describe('the broker on Redis behind a flaky network', () => {
  describeBroker(stubborn(redisSetup));
});
