import { describe } from 'vitest';
import { describeBroker } from '../../../conformance/broker/describe-broker.ts';
import { redisSetup } from './setup.ts';

describe('the broker on Redis', () => {
  describeBroker(redisSetup);
});
