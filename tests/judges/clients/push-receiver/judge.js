// Drives the unmodified push-receiver: registers, listens, and prints a JSON line for its token and each message.
const path = require('path');

const [home, project] = process.argv.slice(2);
const { register, listen } = require(path.join(home, 'node_modules/push-receiver'));

const report = (step, value) => console.log(JSON.stringify({ step, value }));

async function main() {
  const credentials = await register(project);
  report('token', credentials.fcm.token);
  await listen({ ...credentials, persistentIds: [] }, ({ notification, persistentId }) =>
    report('message', [notification, persistentId]));
}

setTimeout(() => process.exit(1), 100000);
main();
