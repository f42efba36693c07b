// Wakes this device when a question comes, if the server does that and the person wants it.
"use strict";

// offerPush shows the part about notifications, if the server wakes devices.
async function offerPush() {
  const state = await pushState("state", {});
  const workers = navigator.serviceWorker; // only over HTTPS, and on the machine itself
  if (!state) return;
  if (!state.key) {
    for (const w of workers ? await workers.getRegistrations() : []) w.unregister(); // of a server before
    return;
  }
  $("push").hidden = false;
  if (!workers || !window.PushManager || !window.Notification) {
    return tellPush("This browser cannot do that here. It needs HTTPS, or an address of this machine. iPhones and iPads cannot.");
  }
  $("push-button").onclick = () => change(state.key);
  const worker = await workers.getRegistration();
  const known = worker && await worker.pushManager.getSubscription();
  // The server keeps devices in memory, so one that was started again has to be told.
  showPush(known && Notification.permission === "granted" ? await subscribe(worker, state.key).catch(() => null) : state, known);
}

// pushState asks the server to do something, and returns how it stands then, or null.
async function pushState(what, body) {
  const r = await post("/push/" + what, body).catch(() => null);
  return r && r.ok ? r.json() : null;
}

function tellPush(words) {
  $("push-state").textContent = words;
}

function showPush(state, on) {
  on = Boolean(on && state);
  $("push-button").hidden = false;
  $("push-button").dataset.on = on;
  $("push-button").textContent = on ? "Do not notify this device" : "Notify this device";
  tellPush(state ? ["Devices that are notified: " + (state.devices || 0) + (on ? ", with this one." : "."),
    ...(state.failed || []).map((why) => "Not notified the last time: " + why + ".")].join(" ") : "");
}

// change switches the notifications of this device on or off.
async function change(key) {
  const button = $("push-button");
  button.disabled = true;
  try {
    if (button.dataset.on === "true") {
      showPush(await unsubscribe(), false);
    } else {
      if (await Notification.requestPermission() !== "granted") throw new Error("The browser does not allow notifications of this page.");
      await navigator.serviceWorker.register(workerScript());
      showPush(await subscribe(await navigator.serviceWorker.ready, key), true);
    }
  } catch (fault) {
    tellPush("Not changed: " + fault.message);
  } finally {
    button.disabled = false;
  }
}

// workerScript is the only script that the page may register (trusted-types worker). The policy can be made once.
let workerPolicy;
function workerScript() {
  if (!window.trustedTypes) return "/worker.js";
  workerPolicy = workerPolicy || trustedTypes.createPolicy("worker", { createScriptURL: () => "/worker.js" });
  return workerPolicy.createScriptURL("");
}

async function subscribe(worker, key) {
  let s = await worker.pushManager.getSubscription();
  if (s && base64url(s.options.applicationServerKey) !== key) { // of a server before
    await s.unsubscribe();
    s = null;
  }
  s = s || await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys } = s.toJSON();
  const r = await post("/push/add", { endpoint, keys });
  if (r.ok) return r.json();
  await s.unsubscribe();
  throw new Error(await r.text());
}

async function unsubscribe() {
  const worker = await navigator.serviceWorker.getRegistration();
  const s = worker && await worker.pushManager.getSubscription();
  const state = s && await pushState("remove", { endpoint: s.endpoint });
  if (s) await s.unsubscribe();
  if (worker) await worker.unregister();
  return state;
}
