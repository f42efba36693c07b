package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
)

// registration is the registration of one passkey. The mutex of the door guards it.
type registration struct {
	name      string
	secret    string // of the link, "" once it is used
	party     passkey.Party
	challenge []byte // nil until the link is used
	busy      bool   // a passkey is being added
	done      chan passkey.Key
}

// newPasskeys returns nil without a file of keys.
func newPasskeys(o *Options) (*passkey.Keys, error) {
	if o.Passkeys == "" {
		return nil, nil
	}
	if o.Origin != "" {
		if _, err := passkey.NewParty(o.Origin); err != nil {
			return nil, fmt.Errorf("Options.Origin: %w", err)
		}
	}
	keys := passkey.NewKeys(o.Passkeys)
	if _, err := keys.List(); err != nil {
		return nil, fmt.Errorf("Options.Passkeys: %w", err)
	}
	return keys, nil
}

// noPasskey says that a relying party has no passkey.
func noPasskey(p passkey.Party) error {
	return fmt.Errorf("no passkey is registered for %s; codex-mcp passkey add registers one", p.ID)
}

// RegisterPasskey registers a passkey for the approvals of the page, by a link that works once, and
// waits for it. The file of Options.Passkeys then has the passkey with the name, or with a number if
// the name is "". Who has the link can register a passkey, so show it only to the user.
func (p *Page) RegisterPasskey(ctx context.Context, name string, show func(link string)) (party string, err error) {
	if p.passkeys == nil {
		return "", errors.New("page: no Options.Passkeys")
	}
	r := &registration{name: name, secret: newSecret(), done: make(chan passkey.Key, 1)}
	if !p.door.begin(r) {
		return "", errors.New("page: another passkey is about to be registered")
	}
	defer p.door.end(r)
	show(p.at("/passkey.html#" + r.secret))
	select {
	case key := <-r.done:
		return key.Party, nil
	case <-ctx.Done():
		return "", ctx.Err()
	case <-p.done:
		return "", errClosed
	}
}

// begin makes r the registration, if there is none.
func (d *door) begin(r *registration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.registration != nil {
		return false
	}
	d.registration = r
	return true
}

func (d *door) end(r *registration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.registration == r {
		d.registration = nil
	}
}

// register exchanges the secret of a link for a challenge. The link does not work again.
func (d *door) register(secret string, at passkey.Party) (challenge []byte, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.registration
	if r == nil || r.secret == "" || !same(r.secret, secret) {
		return nil, false
	}
	r.secret, r.party, r.challenge = "", at, passkey.NewNonce()
	return r.challenge, true
}

// take returns the registration that waits for a passkey, for one caller at a time, or nil.
func (d *door) take(at passkey.Party) *registration {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.registration
	if r == nil || r.challenge == nil || r.party != at || r.busy {
		return nil
	}
	r.busy = true
	return r
}

// back ends what take began. Who has the challenge may try again.
func (d *door) back(r *registration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.busy = false
}

// add ends the registration with what the browser returned for its challenge.
func (p *Page) add(w http.ResponseWriter, a *passkey.Attestation, at passkey.Party) {
	r := p.door.take(at)
	if r == nil {
		refuse(w, http.StatusForbidden, "no passkey is about to be registered: get a new link")
		return
	}
	var key passkey.Key
	made, err := passkey.Register(r.party, r.challenge, a)
	if err == nil {
		key, err = p.passkeys.Add(*made, r.name)
	}
	if err != nil {
		p.door.back(r)
		refuse(w, http.StatusForbidden, "%v", err)
		return
	}
	p.door.end(r)
	reply(w, http.StatusOK, map[string]string{"name": key.Name})
	_ = http.NewResponseController(w).Flush() // before the page may be closed; an error means that the browser has gone
	r.done <- key
}

// creation is what a browser needs for navigator.credentials.create.
type creation struct {
	Challenge  passkey.Bytes   `json:"challenge"`
	Party      string          `json:"rpId"`
	User       passkey.Bytes   `json:"user"`
	Algorithms []int           `json:"algorithms"`
	Keys       []passkey.Bytes `json:"keys"`
}

// register answers a request of the page that registers a passkey: "begin" or "add".
func (p *Page) register(w http.ResponseWriter, r *http.Request, do string) {
	var in struct {
		Secret string `json:"secret"`
		passkey.Attestation
	}
	if _, ok := readBody(w, r, &in); !ok {
		return
	}
	if p.passkeys == nil || do != "begin" && do != "add" {
		refuse(w, http.StatusNotFound, "there is nothing here")
		return
	}
	party, err := passkey.NewParty(p.origin(r))
	if err != nil {
		refuse(w, http.StatusForbidden, "%v", err)
		return
	}
	if do == "add" {
		p.add(w, &in.Attestation, party)
		return
	}
	keys, err := p.passkeys.Of(party)
	if err != nil {
		refuse(w, http.StatusForbidden, "%v", err)
		return
	}
	challenge, ok := p.door.register(in.Secret, party)
	if !ok {
		refuse(w, http.StatusForbidden, "this link was used already, or is too old")
		return
	}
	known(r.Context())
	out := creation{Challenge: challenge, Party: party.ID, User: passkey.NewNonce(), Algorithms: passkey.Algorithms(), Keys: []passkey.Bytes{}}
	for _, k := range keys {
		out.Keys = append(out.Keys, k.ID)
	}
	reply(w, http.StatusOK, out)
}
