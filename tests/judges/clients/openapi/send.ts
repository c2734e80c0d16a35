// Registers a device and sends a message through the client that openapi-generator has made.
import { Configuration, DevicesApi, MessagesApi, Platform } from "./index";

declare const process: { env: Record<string, string>; exit(code: number): void };

const configuration = new Configuration({ basePath: process.env.STENTOR_URL, accessToken: process.env.STENTOR_KEY });

async function main(): Promise<void> {
  const registered = await new DevicesApi(configuration).devicesRegister({
    deviceRegistration: { platform: Platform.Android, token: "token-of-typescript", user: "maria" },
  });
  const sent = await new MessagesApi(configuration).messagesSend({
    messageRequest: { target: { user: "maria" }, data: { from: "typescript" } },
  });
  console.log(registered.id, sent.id);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
