package page

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/page/internal/webpush"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/webaddr"
)

const (
	// maxDevices is how many devices are woken; a new one replaces the oldest.
	maxDevices = 8
	// pushGrace is how long a question waits for the answer of a program before devices are woken.
	pushGrace = time.Second
	// pushPace is the least time between two wake-ups.
	pushPace = 30 * time.Second
	// maxFailure is how much is kept of why a device was not woken; a certificate may be quoted.
	maxFailure = 300
)

// Push says how devices are woken when a question comes, by the push services of their browsers
// (Web Push). A wake-up is encrypted and holds nothing; the notification has constant words. Devices
// are kept in memory: after a restart of the server, opening the page subscribes them again. The page
// shows why devices were not woken.
type Push struct {
	// Client sends the wake-ups, for example through a proxy. It follows no redirect and sends no
	// cookies. A browser chooses the address, so with a client of your own you say which addresses
	// may be reached. Default: one that connects only to public addresses, at the port 443, without a
	// proxy.
	Client *http.Client
}

// push wakes devices up.
type push struct {
	sender *webpush.Sender
	asked  chan struct{} // buffered; has an element if there may be a new question
	// devices has the oldest first. A change replaces it.
	devices atomic.Pointer[[]*webpush.Subscription]
	failed  atomic.Pointer[[]string] // why devices were not woken the last time
}

// newPush returns nil if devices are not woken.
func newPush(o *Push) (*push, error) {
	if o == nil {
		return nil, nil
	}
	sender, err := webpush.NewSender(o.Client)
	if err != nil {
		return nil, err
	}
	u := &push{sender: sender, asked: make(chan struct{}, 1)}
	u.devices.Store(new([]*webpush.Subscription))
	u.failed.Store(new([]string))
	return u, nil
}

// startPush starts the goroutine that wakes devices until Close.
func (p *Page) startPush() error {
	var err error
	if p.push, err = newPush(p.options.Push); err != nil || p.push == nil || !p.work.enter() {
		return err
	}
	go func() {
		defer p.work.leave()
		p.wakeDevices()
	}()
	return nil
}

// question tells that there may be a new question. It does not wait.
func (u *push) question() {
	if u == nil {
		return
	}
	select {
	case u.asked <- struct{}{}:
	default:
	}
}

// wakeDevices wakes the devices at most once for each question, if nobody answers it at once, and no
// more often than pushPace.
func (p *Page) wakeDevices() {
	pause := func(d time.Duration) bool {
		select {
		case <-time.After(d):
			return true
		case <-p.done:
			return false
		}
	}
	for woken := 0; ; {
		select {
		case <-p.push.asked:
		case <-p.done:
			return
		}
		if !pause(pushGrace) {
			return
		}
		newest := p.board.newestOpen()
		if newest <= woken {
			continue
		}
		woken = newest
		p.push.send(p.done)
		if !pause(pushPace) {
			return
		}
	}
}

// newestOpen returns the id of the newest open question, 0 if there is none.
func (b *board) newestOpen() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	newest := 0
	for _, q := range b.byRequest {
		if q.entry.Question.State == stateOpen {
			newest = max(newest, q.entry.ID)
		}
	}
	return newest
}

// send wakes all devices, and forgets those that have gone. It gives up when done is closed.
func (u *push) send(done <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	devices := u.list()
	failed := make([]string, len(devices))
	var sending sync.WaitGroup
	for i, d := range devices {
		sending.Go(func() {
			err := u.sender.Send(ctx, d)
			if errors.Is(err, webpush.ErrGone) {
				u.remove(d.Endpoint())
			}
			if err != nil {
				failed[i] = elicit.OneLine(d.Origin()+": "+err.Error(), maxFailure)
			}
		})
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		sending.Wait()
	}()
	select {
	case <-sent:
	case <-done:
		cancel()
		<-sent
	}
	failed = slices.DeleteFunc(failed, func(why string) bool { return why == "" })
	u.failed.Store(&failed)
}

// list returns the devices, which must not be changed.
func (u *push) list() []*webpush.Subscription { return *u.devices.Load() }

// add adds a device, or replaces what was known of it.
func (u *push) add(d *webpush.Subscription) { u.replace(d.Endpoint(), d) }

func (u *push) remove(endpoint string) { u.replace(endpoint) }

// replace replaces the device with an endpoint, if there is one, by none or a newer one.
func (u *push) replace(endpoint string, by ...*webpush.Subscription) {
	for {
		old := u.devices.Load()
		all := slices.DeleteFunc(slices.Clone(*old), func(d *webpush.Subscription) bool { return d.Endpoint() == endpoint })
		all = append(all, by...)
		all = all[max(0, len(all)-maxDevices):]
		if u.devices.CompareAndSwap(old, &all) {
			return
		}
	}
}

// pushState is the answer to each request about devices. It is empty if none are woken.
type pushState struct {
	// Key is the server's, for which the browser subscribes.
	Key string `json:"key,omitzero"`
	// Devices is how many are woken.
	Devices int `json:"devices,omitzero"`
	// Failed is why devices were not woken the last time.
	Failed []string `json:"failed,omitempty"`
}

// device answers a request of the page about its device: "state", "add" or "remove".
func (p *Page) device(w http.ResponseWriter, r *http.Request, do string) {
	var in struct {
		Endpoint string `json:"endpoint"`
		Keys     struct {
			P256dh string `json:"p256dh"`
			Auth   string `json:"auth"`
		} `json:"keys"`
	}
	if _, ok := readBody(w, r, &in); !ok {
		return
	}
	switch {
	case p.push == nil && do == "state":
		reply(w, http.StatusOK, pushState{})
		return
	case p.push == nil:
		refuse(w, http.StatusNotFound, "this server wakes no devices")
		return
	case do == "state":
	case do == "add" && !secure(r.Header.Get("Origin")):
		refuse(w, http.StatusForbidden, "the page is open neither over HTTPS nor at this machine")
		return
	case do == "add":
		d, err := p.push.sender.Subscription(in.Endpoint, in.Keys.P256dh, in.Keys.Auth)
		if err != nil {
			refuse(w, http.StatusBadRequest, "%v", err)
			return
		}
		p.push.add(d)
	case do == "remove":
		p.push.remove(in.Endpoint)
	default:
		refuse(w, http.StatusNotFound, "there is nothing here")
		return
	}
	reply(w, http.StatusOK, pushState{p.push.sender.Key(), len(p.push.list()), *p.push.failed.Load()})
}

// secure reports whether browsers have service workers at an origin: over HTTPS, and on the machine
// that the browser runs on.
func secure(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "https" || webaddr.Loopback(u.Hostname()))
}

// permitWorker lets the page's script register its own worker, and nothing else.
func (p *Page) permitWorker(w http.ResponseWriter) {
	if p.push != nil {
		const policy = "Content-Security-Policy"
		w.Header().Set(policy, strings.Replace(w.Header().Get(policy), "trusted-types 'none'", "trusted-types worker", 1))
	}
}
