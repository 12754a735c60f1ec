import { timingSafeEqual } from 'node:crypto';
import type { Access, DashboardRequest } from 'escapement/dashboard';

const ADMIN = Buffer.from(`Basic ${Buffer.from('admin:sesame').toString('base64')}`);
const GUEST = Buffer.from(`Basic ${Buffer.from('guest:guest').toString('base64')}`);

/** An administrator may do everything, a guest may read, others have to log in. */
export function mayUse({ headers }: DashboardRequest): Access {
  const sent = Buffer.from(
    (headers instanceof Headers ? headers.get('authorization') : headers.authorization) ?? '',
  );
  const is = (login: Buffer): boolean => sent.length === login.length && timingSafeEqual(sent, login);
  if (is(ADMIN)) return true;
  return is(GUEST) ? 'read-only' : { challenge: 'Basic realm="jobs"' };
}
