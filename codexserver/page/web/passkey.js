// Registers passkeys, and signs approvals with them.
"use strict";

const base64url = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const fromBase64url = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const keyList = (keys) => keys.map((id) => ({ type: "public-key", id: fromBase64url(id) }));

// Unsigned is why an approval was not signed, and so not sent.
class Unsigned extends Error {}

const noPasskeys = "This browser has no passkeys here. They need HTTPS, or http://localhost.";

// approves reports whether an answer approves.
const approves = (result) => result.action === "accept" && !(result.content && ["denied", "abort"].includes(result.content.decision));

// signature lets the person sign an answer to a question with a passkey.
async function signature(q, result) {
  if (!navigator.credentials || !window.PublicKeyCredential) throw new Unsigned(noPasskeys);
  const r = await post("/questions/" + q.id + "/sign", { decision: (result.content && result.content.decision) || "approved" });
  if (!r.ok) throw new Unsigned(r.status === 409 ? "This question is answered." : await r.text());
  const { challenge, rpId, keys, timeout } = await r.json();
  q.signing = new AbortController();
  try {
    const made = await navigator.credentials.get({
      publicKey: { challenge: fromBase64url(challenge), rpId, allowCredentials: keyList(keys), userVerification: "required", timeout },
      signal: q.signing.signal,
    });
    return {
      id: base64url(made.rawId),
      clientDataJSON: base64url(made.response.clientDataJSON),
      authenticatorData: base64url(made.response.authenticatorData),
      signature: base64url(made.response.signature),
    };
  } catch (fault) {
    throw new Unsigned(fault.name === "AbortError" ? "This question is answered." : "Not signed, so nothing was sent: " + fault.message);
  } finally {
    q.signing = null;
  }
}

// offerRegistration is for the page of a link that registers a passkey.
function offerRegistration() {
  const say = (words) => { document.getElementById("register-state").textContent = words; };
  const button = document.getElementById("register-button");
  const secret = location.hash.slice(1);
  const send = (what, body) => fetch("/passkey/" + what, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  let options = null; // the link works once
  history.replaceState(null, "", location.pathname);
  if (!navigator.credentials || !window.PublicKeyCredential) return say(noPasskeys);
  if (!secret) return say("It was opened without a link. codex-mcp passkey add prints one.");
  button.hidden = false;
  button.onclick = async () => {
    button.disabled = true;
    try {
      if (!options) {
        const r = await send("begin", { secret });
        if (!r.ok) {
          button.hidden = true;
          return say("Not registered: " + await r.text());
        }
        options = await r.json();
      }
      const made = await navigator.credentials.create({
        publicKey: {
          challenge: fromBase64url(options.challenge),
          rp: { id: options.rpId, name: "codex-mcp" },
          user: { id: fromBase64url(options.user), name: "approvals", displayName: "Approvals of codex-mcp" },
          pubKeyCredParams: options.algorithms.map((alg) => ({ type: "public-key", alg })),
          excludeCredentials: keyList(options.keys),
          authenticatorSelection: { userVerification: "required", residentKey: "preferred" },
          attestation: "none",
        },
      });
      const r = await send("add", { clientDataJSON: base64url(made.response.clientDataJSON), attestationObject: base64url(made.response.attestationObject) });
      if (!r.ok) return say("Not registered: " + await r.text());
      button.hidden = true;
      say("Registered: " + (await r.json()).name + ". You can close this tab.");
    } catch (fault) {
      say("Not registered: " + fault.message);
    } finally {
      button.disabled = false;
    }
  };
}

if (document.getElementById("register")) offerRegistration();
