// Runs the unmodified web-push-testing, a push service for tests of senders, on the port that is its last argument.
const path = require("node:path");

const [home, port] = process.argv.slice(2);
const sources = path.join(home, "node_modules", "web-push-testing", "src");
const { PushApiModel } = require(path.join(sources, "PushApiModel.js"));
const Server = require(path.join(sources, "server.js"));

new Server(new PushApiModel(), Number(port)).startServer();
