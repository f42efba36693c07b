// The page's service worker. It shows constant words when a push comes, whatever that holds, and
// opens the page. It touches no request.
"use strict";

addEventListener("push", (event) => event.waitUntil(registration.showNotification("A question waits", {
  body: "Open the approvals page to decide.",
  tag: "question", // one notification, however many questions
  renotify: true,
})));

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPage());
});

// openPage prefers a tab that is open, because that one has access.
async function openPage() {
  const tabs = await clients.matchAll({ type: "window", includeUncontrolled: true });
  return tabs.length ? tabs[0].focus() : clients.openWindow("/");
}
