// Runs the unmodified oidc-provider with its own pages for login and consent, and prints its address as one JSON line. Ends with its input.
'use strict';

const http = require('node:http');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const [home, client, secret, redirect, back] = process.argv.slice(2);
/** The names and roles of the persons; each logs in with any password. */
const PERSONS = {
  ada: { name: 'Ada Lovelace', roles: ['push-admins'] },
  bob: { name: 'Bob', roles: ['stentor:*:viewer'] },
  carl: { name: 'Carl', roles: ['stentor:*:sender'] },
  eve: { name: 'Eve', roles: ['guests'] },
};

const settings = {
  clients: [
    {
      client_id: client,
      client_secret: secret,
      redirect_uris: [redirect],
      post_logout_redirect_uris: [back],
      response_types: ['code'],
      grant_types: ['authorization_code'],
    },
  ],
  claims: { openid: ['sub'], profile: ['name', 'roles'] },
  conformIdTokenClaims: false,
  findAccount: (_, accountId) => ({ accountId, claims: async () => ({ sub: accountId, ...PERSONS[accountId] }) }),
  pkce: { required: () => true },
  cookies: { keys: ['of a judge'] },
};

async function main() {
  const { default: Provider } = await import(pathToFileURL(path.join(home, 'node_modules/oidc-provider/lib/index.js')));
  const server = http.createServer();
  await new Promise((done) => server.listen(0, 'localhost', done));
  // Another site than the server's, which browsers know as 127.0.0.1: cookies of one are not sent to the other.
  const issuer = `http://localhost:${server.address().port}`;
  server.on('request', new Provider(issuer, settings).callback());
  process.stdout.write(JSON.stringify({ ok: true, value: issuer }) + '\n');
  process.stdin.on('end', () => process.exit(0)).resume();
}

main();
