package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/page"
)

// subscriptions are made by the maker of the browser, which the tests do not reach: this stands for that.
// They last as long as the window, as those of a browser outlast a tab.
const subscriptions = `{
	const kept = () => {
		const key = localStorage.getItem("subscription")
		const endpoint = %q
		return key && {
			endpoint,
			options: { applicationServerKey: Uint8Array.from(atob(key.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0)).buffer },
			toJSON: () => ({ endpoint, expirationTime: null, keys: {
				p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", auth: "BTBZMqHH6r4Tts7J_aSIgg" } }),
			unsubscribe: async () => { localStorage.removeItem("subscription"); return true },
		}
	}
	PushManager.prototype.getSubscription = async () => kept()
	const real = PushManager.prototype.subscribe
	PushManager.prototype.subscribe = async function (o) {
		await real.call(this, o).catch((e) => { if (e.name !== "AbortError") throw e }) // the key is one; private windows get no subscription
		if (kept() || !o.userVisibleOnly) throw new Error("refused")
		localStorage.setItem("subscription", o.applicationServerKey)
		return kept()
	}
}`

// TestPush has a question on the page, which wakes the device by a push service. Chromium passes the push
// on to the page's worker, which shows constant words, and opens the page. A server at the same port
// is told of the device by the page; one that wakes nobody removes the worker.
func TestPush(t *testing.T) {
	woken := make(chan string, 10)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		woken <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusCreated)
	}))
	defer service.Close()
	options := func(port int) *page.Options {
		return &page.Options{Port: port, Push: &page.Push{Client: service.Client()}}
	}
	r := startWith(t, asking, nil, &codexserver.Options{}, options(0))
	b := newTab(t)
	_, err := chromedp.Call(b.ctx, cdppage.AddScriptToEvaluateOnNewDocument,
		cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf(subscriptions, service.URL+"/device")})
	if err != nil {
		t.Fatal(err)
	}
	link, err := url.Parse(r.page.Link())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(link.Port())
	if err != nil {
		t.Fatal(err)
	}
	_, err = chromedp.CallBrowser(b.ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
		Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Setting: cdpbrowser.PermissionSettingGranted,
		BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
	})
	if err != nil {
		t.Fatal(err)
	}
	registered := make(chan serviceworker.RegistrationID, 1)
	err = chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, r := range e.Registrations {
				select {
				case registered <- r.RegistrationID:
				default: // the first is the page's
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, serviceworker.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}

	b.visit(link.String())
	b.click("Notify this device")
	b.see(`document.querySelector("#push-state").textContent === "Devices that are notified: 1, with this one."`)
	b.look("push")
	answer := r.call("git push")
	first := get(t, woken)
	// A busy Chromium loses a push now and then, as a push service may.
	const shown = `(async () => {
		const worker = await navigator.serviceWorker.getRegistration()
		for (const began = performance.now(); performance.now() - began < 2000; await new Promise((look) => setTimeout(look, 20))) {
			const all = await worker.getNotifications()
			for (const n of all) n.close()
			if (all.length) return all.map((n) => n.title + ": " + n.body).join("\n")
		}
		return ""
	})()`
	worker := <-registered
	for _, data := range []string{"", `{"title":"rm -rf /"}`} {
		got := ""
		for try := 0; got == "" && try < 10; try++ {
			if _, err := chromedp.Call(b.ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{
				Origin: "http://" + link.Host, RegistrationID: worker, Data: data,
			}); err != nil {
				t.Fatal(err)
			}
			got = eval[string](b, shown)
		}
		if got != "A question waits: Open the approvals page to decide." {
			t.Fatalf("a push with %q shows %q", data, got)
		}
	}
	if got, want := b.worker(`(WindowClient.prototype.focus = async function () { return this.url }, openPage())`), "http://"+link.Host+"/"; !strings.HasPrefix(got, want) {
		t.Errorf("the notification opens %s, not the tab at %s", got, want)
	}
	b.click("Approve once")
	if got := get(t, answer); got != "approved" {
		t.Errorf("the answer is %q", got)
	}

	if err := r.page.Close(); err != nil {
		t.Fatal(err)
	}
	r = startWith(t, asking, nil, &codexserver.Options{}, options(port))
	b.visit(r.page.Link())
	b.see(`document.querySelector("#push-state").textContent === "Devices that are notified: 1, with this one."`)
	answer = r.call("git pull")
	if second := get(t, woken); second == first {
		t.Error("the second server has the key of the first")
	}
	b.click("Deny")
	get(t, answer)
	b.click("Do not notify this device")
	b.see(`document.querySelector("#push-state").textContent === "Devices that are notified: 0."`)
	b.click("Notify this device") // again, in the same tab
	b.see(`document.querySelector("#push-state").textContent.endsWith("with this one.")`)

	if err := r.page.Close(); err != nil {
		t.Fatal(err)
	}
	r = startWith(t, asking, nil, &codexserver.Options{}, &page.Options{Port: port})
	b.visit(r.page.Link())
	b.see(`document.querySelector("#link").dataset.state === "live"`)
	const workers = `navigator.serviceWorker.getRegistrations().then((all) => all.length)`
	for eval[int](b, workers) > 0 { // as long as the tab may live
	}
	if !eval[bool](b, `document.querySelector("#push").hidden`) {
		t.Error("a server that wakes no devices offers it")
	}
}

// worker evaluates an expression in the service worker of the tab's page.
func (b *tab) worker(expression string) string {
	b.t.Helper()
	targets, err := chromedp.Targets(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, target := range targets {
		if target.Type != "service_worker" || target.BrowserContextID != chromedp.FromContext(b.ctx).BrowserContextID {
			continue
		}
		ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithTargetID(target.TargetID))
		defer cancel()
		return eval[string](&tab{t: b.t, ctx: ctx}, expression)
	}
	b.t.Fatal("no service worker runs")
	return ""
}
