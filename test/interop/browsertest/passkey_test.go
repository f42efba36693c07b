package browsertest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/elicit"
)

// authenticator is Chromium's virtual one, in a tab.
type authenticator struct {
	*tab
	id webauthn.AuthenticatorID
}

// authenticate gives a tab an authenticator.
func (b *tab) authenticate() *authenticator {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	added, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	return &authenticator{b, added.AuthenticatorID}
}

// fault lets the authenticator sign wrongly, or without a person.
func (a *authenticator) fault(signature, present, verified bool) {
	a.t.Helper()
	_, err := chromedp.Call(a.ctx, webauthn.SetResponseOverrideBits, webauthn.SetResponseOverrideBitsParams{
		AuthenticatorID: a.id, IsBogusSignature: &signature, IsBadUP: &present, IsBadUV: &verified,
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

// person says whether the person proves who they are.
func (a *authenticator) person(verified bool) {
	a.t.Helper()
	_, err := chromedp.Call(a.ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: a.id, IsUserVerified: verified})
	if err != nil {
		a.t.Fatal(err)
	}
}

// register registers a passkey of the authenticator, by a link.
func (a *authenticator) register(p *page.Page) {
	a.t.Helper()
	links, done := make(chan string, 1), make(chan string, 1)
	go func() {
		party, err := p.RegisterPasskey(a.ctx, "laptop", func(link string) { links <- link })
		done <- fmt.Sprint(party, err)
	}()
	link := get(a.t, links)
	a.visit(link)
	a.see(`!document.querySelector("#register-button").hidden && location.hash === ""`)
	a.look("register")
	a.do(chromedp.Click(chromedp.CSS("#register-button"), chromedp.NodeVisible))
	a.see(`document.querySelector("#register-state").textContent === "Registered: laptop. You can close this tab."`)
	if got := get(a.t, done); got != "localhost<nil>" {
		a.t.Errorf("registered for %s", got)
	}
	a.visit(link) // which was used
	a.do(chromedp.Click(chromedp.CSS("#register-button"), chromedp.NodeVisible))
	a.see(`document.querySelector("#register-state").textContent.startsWith("Not registered: this link was used already")`)
}

// toast waits until the page says words, and forgets them.
func (b *tab) toast(words string) {
	b.t.Helper()
	b.see(fmt.Sprintf(`document.querySelector("#toast").textContent.startsWith(%q)`, words))
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#toast").textContent = ""`))
}

// sent keeps the bodies of the answers that the page sends.
const sent = `{
	const real = post
	window.sent = []
	post = (path, body) => { if (body.proof) sent.push(body); return real(path, body) }
}`

// TestPasskey registers a passkey in a browser, and approves commands with it, which run. What nobody signed
// for this question is refused, and nothing runs.
func TestPasskey(t *testing.T) {
	w := newWorkshopWith(t, nil, &page.Options{Passkeys: filepath.Join(t.TempDir(), "passkeys.json")},
		providertest.Call(providertest.Shell("1", "touch", "one")), providertest.Call(providertest.Shell("2", "touch", "two")),
		providertest.Call(providertest.Shell("3", "touch", "three")), providertest.Say("All is done."))
	b := newTab(t)
	a := b.authenticate()
	answer := w.call("Make the files.")
	b.visit(w.page.Link())
	b.see(`document.querySelector(".ask .command").textContent === "touch one"`)
	b.click("Approve once")
	b.toast("nothing can be approved: no passkey is registered for localhost; codex-mcp passkey add registers one")
	a.register(w.page)
	b.visit(w.page.Link())
	b.see(`document.querySelector(".ask .command").textContent === "touch one" && live()`)
	b.do(chromedp.Evaluate[chromedp.Void](sent))

	a.fault(true, false, false)
	b.click("Approve once")
	b.toast("not approved: the signature is wrong")
	a.fault(false, true, false)
	b.click("Approve once")
	b.toast("not approved: nobody touched the authenticator")
	a.fault(false, false, true)
	b.click("Approve once")
	b.toast("not approved: the authenticator did not verify who used it")
	a.fault(false, false, false)
	a.person(false)
	b.click("Approve once")
	b.toast("Not signed, so nothing was sent: ")
	a.person(true)
	refused := func(what, body string) {
		t.Helper()
		if got := eval[int](b, fmt.Sprintf(`(async () => (await post("/questions/" + selected.id, %s)).status)()`, body)); got != 403 {
			t.Errorf("%s: status %d", what, got)
		}
	}
	refused("without a signature", `{ action: "accept" }`)
	refused("with an earlier signature", `sent[0]`)
	if w.exists("one") {
		t.Fatal("the command ran without a signature")
	}
	b.click("Approve once")
	b.see(`questions.size === 1 && document.querySelector(".ask .command").textContent === "touch two"`)
	if !w.exists("one") {
		t.Error("the signed command did not run")
	}

	refused("with the signature of another question", `sent.at(-1)`)
	refused("with the signature of another decision", `await signature(selected, { action: "accept" }).then((proof) => ({ action: "accept", content: { decision: "approved_for_session" }, proof }))`)
	if w.exists("two") {
		t.Fatal("the command ran without its signature")
	}
	b.settle()
	b.press("a")
	b.see(`questions.size === 1 && document.querySelector(".ask .command").textContent === "touch three"`)
	if !w.exists("two") {
		t.Error("the command that was signed for the session did not run")
	}
	b.click("Deny") // unsigned
	if got := get(t, answer); got != "All is done." || w.exists("three") {
		t.Errorf("the call was answered %q", got)
	}
}

// TestPasskeyOfClient has a client that approves by itself. The page needs a signature, so nothing runs.
func TestPasskeyOfClient(t *testing.T) {
	approves := func(context.Context, *client.Question) elicit.Outcome {
		<-time.After(time.Second / 2) // as a person would
		return elicit.Outcome{Decision: elicit.Approved}
	}
	w := newWorkshopWith(t, approves, &page.Options{Passkeys: filepath.Join(t.TempDir(), "passkeys.json")},
		providertest.Call(providertest.Shell("1", "touch", "made")), providertest.Say("It was refused."))
	if got := get(t, w.call("Make the file.")); got != "It was refused." || w.exists("made") {
		t.Errorf("the call was answered %q", got)
	}
	if got := w.told(); !strings.Contains(got, "nobody has signed it with a passkey on the approvals page") {
		t.Errorf("the model was told %q", got)
	}
}
