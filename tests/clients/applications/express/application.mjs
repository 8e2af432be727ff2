// A shop in Express: its sessions are in Redis by `store.mjs`, which is what docs/applications.md shows.
//
// `application.mjs PORT` tries the store of sessions, prints what each step gave, and then serves users.

import { isDeepStrictEqual } from 'node:util';
import express from 'express';
import session from 'express-session';
import { store } from './store.mjs';

const port = Number(process.argv[2]);
const MANY = 150;

const application = express();
application.use(session({ store, secret: 'of a test', resave: false, saveUninitialized: false }));
// A session is saved before its user hears of it: what was answered is in the store.
const saved = (request, response, next, text) => request.session.save((error) => (error ? next(error) : response.send(text)));
application.get('/login', (request, response, next) => {
  request.session.regenerate((error) => {
    if (error) return next(error);
    Object.assign(request.session, { user: request.query.user, count: 0 });
    return saved(request, response, next, `${request.query.user} 0`);
  });
});
application.get('/{*rest}', (request, response, next) => (request.session.user ? next() : response.status(401).send('nobody')));
application.get('/count', (request, response, next) => {
  request.session.count += 1;
  saved(request, response, next, `${request.session.user} ${request.session.count}`);
});
application.get('/read', (request, response) => response.send(`${request.session.user} ${request.session.count}`));
application.get('/logout', (request, response, next) => request.session.destroy((error) => (error ? next(error) : response.send('bye'))));

function equal(what, actual, expected) {
  const isSo = isDeepStrictEqual(actual, expected);
  const more = isSo ? '' : `, expected ${JSON.stringify(expected)}`;
  console.log(`${isSo ? 'ok' : 'FAILED'} ${what}: ${JSON.stringify(actual)}${more}`);
}

const of = (user, more = {}) => ({ cookie: { originalMaxAge: null, path: '/' }, user, ...more });

async function tryStore() {
  await store.clear();
  equal('no session', [await store.get('none'), await store.length(), await store.ids(), await store.all()], [null, 0, [], []]);
  await store.set('a', of('ann', { text: 'ä\r\n\0' }));
  equal('set', await store.get('a'), of('ann', { text: 'ä\r\n\0' }));
  await store.set('a', of('ann', { count: 2 }));
  equal('set again', await store.get('a'), of('ann', { count: 2 }));
  const rest = await store.client.ttl('shop:a');
  equal('lasts for a day', rest > 86_000 && rest <= 86_400, true);
  await store.touch('a', of('ann', { cookie: { expires: new Date(Date.now() + 5_000_000) } }));
  const touched = await store.client.ttl('shop:a');
  equal('touch', touched > 4_900 && touched <= 5_000, true);
  await store.set('over', of('eve', { cookie: { expires: new Date(Date.now() - 1000) } }));
  equal('a session that is over', await store.get('over'), null);
  const names = Array.from({ length: MANY }, (_, i) => `many${String(i).padStart(3, '0')}`);
  await Promise.all(names.map((name) => store.set(name, of(name))));
  const each = await Promise.all(names.map(async (name) => (await store.get(name)).user));
  equal('many at once', isDeepStrictEqual(each, names), true);
  equal('ids', isDeepStrictEqual((await store.ids()).sort(), ['a', ...names]), true);
  equal('length', await store.length(), MANY + 1);
  const all = (await store.all()).map((one) => `${one.id} ${one.user}`).sort();
  equal('all', isDeepStrictEqual(all, ['a ann', ...names.map((name) => `${name} ${name}`)]), true);
  await store.destroy('a');
  equal('destroy', [await store.get('a'), await store.length()], [null, MANY]);
  await store.clear();
  equal('clear', [await store.length(), await store.get(names[0])], [0, null]);
}

async function tryUsers() {
  const browser = () => {
    let cookie = '';
    return async (where) => {
      const answer = await fetch(`http://127.0.0.1:${port}${where}`, { headers: { cookie } });
      cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? cookie;
      return `${answer.status} ${await answer.text()}`;
    };
  };
  const [ann, bob] = [browser(), browser()];
  equal('a stranger', await ann('/count'), '401 nobody');
  equal('log in', [await ann('/login?user=ann'), await bob('/login?user=bob')], ['200 ann 0', '200 bob 0']);
  equal('count', [await ann('/count'), await ann('/count'), await bob('/count')], ['200 ann 1', '200 ann 2', '200 bob 1']);
  equal('log out', [await ann('/logout'), await ann('/read'), await bob('/read')], ['200 bye', '401 nobody', '200 bob 1']);
  await bob('/logout');
}

application.listen(port, '127.0.0.1', async () => {
  await tryStore();
  await tryUsers();
  console.log('ready');
});
