import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { PageAsset } from '../../build-page.ts';
import type { Incoming, Outgoing } from './exchange.ts';

const INDEX = 'index.html';

const unzip = promisify(gunzip);

/** Names of assets have a hash of the content: they never change. */
const FOR_EVER = 'public, max-age=31536000, immutable';

/** Scripts, styles and requests of the dashboard only, in no frame. */
const CONTENT_SECURITY_POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"],
  ...["img-src 'self' data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');

/** Returns the response for a file of the page, the empty name being its HTML; undefined if there is no such file. */
export async function pageFile(name: string, { head: { headers } }: Incoming): Promise<Outgoing | undefined> {
  const files = await assetsByName();
  const asset = files.get(name === '' ? INDEX : name);
  if (asset === undefined) return undefined;
  const isIndex = asset.name === INDEX;
  const tag = `W/"${asset.hash}"`; // weak: the same for both encodings
  const shared = {
    ...{ etag: tag, vary: 'accept-encoding', 'content-security-policy': CONTENT_SECURITY_POLICY },
    'cache-control': isIndex ? 'no-cache' : FOR_EVER,
    'content-type': asset.type,
    'referrer-policy': 'no-referrer',
  };
  if (headers['if-none-match'] === tag) return { status: 304, headers: shared };
  if (!acceptsGzip(headers['accept-encoding'])) {
    return { status: 200, headers: shared, body: await unzip(asset.gzipped) };
  }
  return { status: 200, headers: { ...shared, 'content-encoding': 'gzip' }, body: asset.gzipped };
}

function acceptsGzip(accepted: string | string[] = ''): boolean {
  const codings = String(accepted).toLowerCase().split(',');
  return codings.some((coding) => /^\s*gzip\s*(?:;|$)/.test(coding) && !/;\s*q=0(?:\.0*)?\s*$/.test(coding));
}

let assets: Promise<ReadonlyMap<string, PageAsset & { readonly hash: string }>> | undefined;

/**
 * In the package, the build has replaced that module by the files that it makes; here, they are built on the first call, in about a
 * tenth of a second. A failed build is tried again.
 */
function assetsByName(): NonNullable<typeof assets> {
  assets ??= import('../../build-page.ts')
    .then(({ buildPage }) => buildPage())
    .then(
      (all) => new Map(all.map((asset) => [asset.name, { ...asset, hash: hashOf(asset) }])),
      (error: unknown) => {
        assets = undefined;
        throw error;
      },
    );
  return assets;
}

function hashOf({ gzipped }: PageAsset): string {
  return createHash('sha256').update(gzipped).digest('base64url').slice(0, 16);
}
