// A way to the emulators for clients with built-in addresses.
'use strict';

const { syncBuiltinESMExports } = require('node:module');
const tls = require('node:tls');

const { connect } = tls;
/** The address and the authority that stand for each host. */
const places = new Map();

/** Leads TLS connections of this process to these hosts to a place; returns a function that ends it. */
function redirect(hosts, place) {
  for (const host of hosts) places.set(host, place);
  replace(connectHere);
  return () => {
    for (const host of hosts) if (places.get(host) === place) places.delete(host);
    if (places.size === 0) replace(connect);
  };
}

function connectHere(...args) {
  const settings = args.find((arg) => arg !== null && typeof arg === 'object') ?? {};
  const host = typeof args[0] === 'object' ? args[0].host : args[1];
  const place = places.get(host);
  if (place === undefined) return connect(...args);
  const listener = args.find((arg) => typeof arg === 'function');
  return connect({ ...settings, servername: settings.servername || host, ...place }, listener);
}

function replace(own) {
  tls.connect = own;
  // For modules that have imported `connect` by its name.
  syncBuiltinESMExports();
}

module.exports = { redirect };
