// Shows a message of Stentor in browsers without declarative messages.
self.addEventListener("push", (event) => {
  const { notification = {}, data = {} } = event.data?.json() ?? {};
  const { title = "", navigate, ...options } = notification;
  // A message without a notification is for the app itself.
  if (title) event.waitUntil(self.registration.showNotification(title, { ...options, data: { ...data, navigate } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { navigate } = event.notification.data;
  if (navigate) event.waitUntil(self.clients.openWindow(navigate));
});
