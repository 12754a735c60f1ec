import { EscapementError } from 'escapement';
import { ReplyError } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { toBrokerError } from '../../../../src/tasks/broker/redis/redis-errors.ts';

function replyError(message: string): Error {
  return new (ReplyError as new (message: string) => Error)(message);
}

const named = (name: string): Error => Object.assign(new Error('something'), { name });

describe('an error of Redis', () => {
  it.each([
    replyError('LOADING Redis is loading the dataset in memory'),
    replyError("READONLY You can't write against a read only replica."),
    replyError("READONLY You can't write against a read only replica. script: 0a1b, on @user_script:1."),
    replyError(
      "ERR Error running script (call to f_0a): @user_script:1: -READONLY You can't write against it.",
    ),
    replyError('CLUSTERDOWN Hash slot not served'),
    replyError('MASTERDOWN Link with MASTER is down'),
    replyError('TRYAGAIN Multiple keys request during rehashing of slot'),
    replyError('MOVED 866 127.0.0.1:7001'),
    replyError('BUSY Redis is busy running a script.'),
    replyError('NOREPLICAS Not enough good replicas to write.'),
    replyError('MISCONF Redis is configured to save RDB snapshots'),
    Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), {
      code: 'ECONNREFUSED',
      syscall: 'connect',
    }),
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' }),
    Object.assign(new Error('getaddrinfo ENOTFOUND there'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' }),
    new Error('Connection is closed.'),
    new Error('Command timed out'),
    new Error("Stream isn't writeable and enableOfflineQueue options is false"),
    new Error("Cluster isn't ready and enableOfflineQueue options is false"),
    new Error('None of startup nodes is available'),
    new Error('Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN'),
    new Error('All sentinels are unreachable and retry is disabled.'),
    named('MaxRetriesPerRequestError'),
    named('ClusterAllFailedError'),
    named('AbortError'),
  ])('an error that may be temporary becomes ERR_BROKER_UNAVAILABLE: %s', (error) => {
    const said = toBrokerError(error);
    expect(said).toBeInstanceOf(EscapementError);
    expect(said).toMatchObject({ code: 'ERR_BROKER_UNAVAILABLE', cause: error });
  });

  it.each([
    replyError('WRONGTYPE Operation against a key holding the wrong kind of value'),
    replyError('NOAUTH Authentication required.'),
    replyError("NOPERM this user has no permissions to run the 'eval' command"),
    replyError('NOSCRIPT No matching script. Please use EVAL.'),
    replyError('OOM command not allowed when used memory > maxmemory.'),
    replyError('ERR the word -READONLYISH in the middle'),
    replyError('NOT FOUND'),
    new TypeError('client.nothing is not a function'),
    new Error('something else'),
    new EscapementError('ERR_TASK_NOT_FOUND', 'Connection is closed.'),
    'no error at all',
    undefined,
  ])('an error that is permanent is returned unchanged: %s', (error) => {
    expect(toBrokerError(error)).toBe(error);
  });

  it('the message of a lost connection does not mention the retry limit of ioredis', () => {
    const error = Object.assign(new Error('Reached the max retries per request limit (which is 0).'), {
      name: 'MaxRetriesPerRequestError',
    });
    expect(toBrokerError(error)).toMatchObject({
      message: 'Redis is unavailable: the connection was lost before the answer',
    });
  });

  it('the message includes the error of the last node of a cluster', () => {
    const error = Object.assign(new Error('Failed to refresh slots cache.'), {
      name: 'ClusterAllFailedError',
      lastNodeError: new Error('ERR This instance has cluster support disabled'),
    });
    expect(toBrokerError(error)).toMatchObject({
      message:
        'Redis is unavailable: Failed to refresh slots cache. ERR This instance has cluster support disabled',
    });
  });
});
