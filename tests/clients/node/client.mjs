// ioredis and node-redis as plain and as cluster clients: the script every client test follows.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, WatchError } from 'redis';

const [host, plainPort, clusterPort] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
let passed = 0;
let failed = 0;

function equal(what, actual, expected) {
  if (isDeepStrictEqual(actual, expected)) {
    passed += 1;
  } else {
    failed += 1;
    console.log(`FAILED ${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
  }
}

async function messageOf(promise) {
  return promise.then(() => 'no error', (error) => String(error.message));
}

async function ioredisScript(name, client, key) {
  equal(`${name} set`, await client.set(key('s'), 'a\r\nb'), 'OK');
  equal(`${name} get`, await client.get(key('s')), 'a\r\nb');
  equal(`${name} append`, await client.append(key('s'), 'c'), 5);
  equal(`${name} incr`, await client.incrby(key('n'), 42), 42);
  equal(`${name} rpush`, await client.rpush(key('l'), 'a', 'b', 'c'), 3);
  equal(`${name} lrange`, await client.lrange(key('l'), 0, -1), ['a', 'b', 'c']);
  equal(`${name} blpop`, await client.blpop(key('l'), 1), [key('l'), 'a']);
  equal(`${name} expire`, await client.expire(key('s'), 1000), 1);
  const ttl = await client.ttl(key('s'));
  equal(`${name} ttl`, ttl > 990 && ttl <= 1000, true);
  equal(`${name} mset`, await client.mset(key('a'), '1', key('b'), '2'), 'OK');
  equal(`${name} mget`, await client.mget(key('a'), key('none'), key('b')), ['1', null, '2']);
  equal(`${name} wrong type`, (await messageOf(client.incr(key('l')))).startsWith('WRONGTYPE'), true);
  const pipeline = client.pipeline();
  for (let i = 0; i < 100; i += 1) pipeline.set(key(`p${i}`), i);
  equal(`${name} pipeline`, (await pipeline.exec()).filter(([error, reply]) => !error && reply === 'OK').length, 100);
  const replies = await client.multi().set(key('w'), 1).incr(key('w')).exec();
  equal(`${name} exec`, replies, [[null, 'OK'], [null, 2]]);
  equal(`${name} delete`, await client.del(key('a'), key('b'), key('none')), 2);
}

async function ioredisPlain() {
  const name = 'ioredis';
  const tag = randomUUID();
  const client = new Redis({ host, port: plainPort, lazyConnect: true, maxRetriesPerRequest: 1 });
  await client.connect();
  await ioredisScript(name, client, (part) => `${tag}:${part}`);
  await client.watch(`${tag}:w`);
  const other = client.duplicate();
  await other.set(`${tag}:w`, 'changed elsewhere');
  equal(`${name} watch`, await client.multi().set(`${tag}:w`, 'lost').exec(), null);
  const found = new Set();
  for await (const keys of client.scanStream({ match: `${tag}:p*`, count: 7 })) keys.forEach((key) => found.add(key));
  equal(`${name} scan`, found.size, 100);
  other.disconnect();
  client.disconnect();
}

async function ioredisCluster() {
  const name = 'ioredis cluster';
  const tag = randomUUID();
  const client = new Cluster([{ host, port: clusterPort }], { lazyConnect: true });
  await client.connect();
  await ioredisScript(name, client, (part) => `{${tag}}${part}`);
  let wrong = 0;
  for (let i = 0; i < 500; i += 1) {
    await client.set(`${tag}:${i}`, i);
    if ((await client.get(`${tag}:${i}`)) !== String(i)) wrong += 1;
  }
  equal(`${name} routing over 500 keys`, wrong, 0);
  const found = new Set();
  for (const node of client.nodes('master')) {
    for await (const keys of node.scanStream({ match: `${tag}:*`, count: 50 })) keys.forEach((key) => found.add(key));
  }
  equal(`${name} scan over all nodes`, found.size, 500);
  client.disconnect();
}

async function nodeRedisScript(name, client, key) {
  equal(`${name} set`, await client.set(key('s'), 'a\r\nb'), 'OK');
  equal(`${name} get`, await client.get(key('s')), 'a\r\nb');
  equal(`${name} append`, await client.append(key('s'), 'c'), 5);
  equal(`${name} incr`, await client.incrBy(key('n'), 42), 42);
  equal(`${name} rpush`, await client.rPush(key('l'), ['a', 'b', 'c']), 3);
  equal(`${name} lrange`, await client.lRange(key('l'), 0, -1), ['a', 'b', 'c']);
  equal(`${name} expire`, await client.expire(key('s'), 1000), 1);
  const ttl = await client.ttl(key('s'));
  equal(`${name} ttl`, ttl > 990 && ttl <= 1000, true);
  equal(`${name} mset`, await client.mSet({ [key('a')]: '1', [key('b')]: '2' }), 'OK');
  equal(`${name} mget`, await client.mGet([key('a'), key('none'), key('b')]), ['1', null, '2']);
  equal(`${name} wrong type`, (await messageOf(client.incr(key('l')))).startsWith('WRONGTYPE'), true);
  const all = await Promise.all(Array.from({ length: 100 }, (_, i) => client.set(key(`p${i}`), String(i))));
  equal(`${name} pipeline`, all.filter((reply) => reply === 'OK').length, 100);
  equal(`${name} exec`, await client.multi().set(key('w'), '1').incr(key('w')).exec(), ['OK', 2]);
  equal(`${name} delete`, await client.del([key('a'), key('b'), key('none')]), 2);
}

async function nodeRedisPlain(protocol) {
  const name = `node-redis RESP${protocol}`;
  const tag = randomUUID();
  const client = createClient({ socket: { host, port: plainPort, reconnectStrategy: false }, RESP: protocol });
  client.on('error', (error) => console.log(`${name}: ${error.message}`));
  await client.connect();
  await nodeRedisScript(name, client, (part) => `${tag}:${part}`);
  await client.watch(`${tag}:w`);
  const other = client.duplicate();
  await other.connect();
  await other.set(`${tag}:w`, 'changed elsewhere');
  const lost = await client.multi().set(`${tag}:w`, 'lost').exec().catch((error) => error instanceof WatchError);
  equal(`${name} watch`, lost, true);
  const found = new Set();
  for await (const keys of client.scanIterator({ MATCH: `${tag}:p*`, COUNT: 7 })) keys.forEach((key) => found.add(key));
  equal(`${name} scan`, found.size, 100);
  other.destroy();
  client.destroy();
}

async function nodeRedisCluster(protocol) {
  const name = `node-redis cluster RESP${protocol}`;
  const tag = randomUUID();
  const client = createCluster({ rootNodes: [{ url: `redis://${host}:${clusterPort}` }], defaults: { RESP: protocol } });
  client.on('error', (error) => console.log(`${name}: ${error.message}`));
  await client.connect();
  await nodeRedisScript(name, client, (part) => `{${tag}}${part}`);
  let wrong = 0;
  for (let i = 0; i < 500; i += 1) {
    await client.set(`${tag}:${i}`, String(i));
    if ((await client.get(`${tag}:${i}`)) !== String(i)) wrong += 1;
  }
  equal(`${name} routing over 500 keys`, wrong, 0);
  client.destroy();
}

const scripts = [
  ioredisPlain,
  ioredisCluster,
  () => nodeRedisPlain(2),
  () => nodeRedisPlain(3),
  () => nodeRedisCluster(2),
  () => nodeRedisCluster(3),
];
for (const script of scripts) {
  await script().catch((error) => {
    failed += 1;
    console.log(`FAILED: ${error.stack}`);
  });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
