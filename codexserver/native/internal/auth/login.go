package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/oauth2"
)

const (
	loginTimeout = 10 * time.Minute
	// farewell bounds the time to send the browser its last page.
	farewell = time.Second
)

// Why a sign-in ended without success.
var (
	ErrCancelled = errors.New("auth: the login was cancelled before it was completed")
	ErrTimeout   = errors.New("auth: login timed out")
)

// login is one sign-in under way.
type login struct {
	id       string
	keeper   *Keeper
	flow     *oauth2.Config
	state    string
	verifier string
	cancel   context.CancelCauseFunc
	answer   chan reply // received from once
}

// reply is the browser's request: it has a code, or an error.
type reply struct {
	code    string
	err     error
	outcome chan error // of the sign-in, for the browser's page
}

// Begin starts a sign-in and returns the address for the user's browser. It cancels an
// earlier sign-in under way. Done is called once, from a goroutine of the keeper: with nil
// when the user is signed in, with [ErrCancelled], with [ErrTimeout] after ten minutes, or
// with the issuer's error.
func (k *Keeper) Begin(done func(id string, err error)) (id, url string, err error) {
	if err := k.configured(); err != nil {
		return "", "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return "", "", ErrCancelled
	}
	if old := k.login; old != nil {
		k.endLogin() // frees the port at once
	}
	listener, err := listen(k.options.Port)
	if err != nil {
		return "", "", fmt.Errorf("auth.port: cannot listen for the browser's return: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &login{
		id:       uuid.NewString(),
		keeper:   k,
		flow:     k.oauth(fmt.Sprintf("http://localhost:%d/auth/callback", port)),
		state:    rand.Text(),
		verifier: oauth2.GenerateVerifier(),
		answer:   make(chan reply),
	}
	l.cancel = func(cause error) {
		listener.Close()
		cancel(cause)
	}
	k.login = l
	k.running.Go(func() {
		err := l.run(ctx, listener)
		l.cancel(err)
		k.mu.Lock()
		if k.login == l {
			k.login = nil
		}
		k.mu.Unlock()
		done(l.id, err)
	})
	return l.id, l.address(), nil
}

// Cancel cancels the sign-in with an id. It returns false if there is none.
func (k *Keeper) Cancel(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.login == nil || k.login.id != id {
		return false
	}
	k.endLogin()
	return true
}

// endLogin cancels the sign-in under way. The caller holds mu.
func (k *Keeper) endLogin() {
	if k.login != nil {
		k.login.cancel(ErrCancelled)
		k.login = nil
	}
}

// listen listens on a port of the loopback interface. For 0 it tries the ports that
// issuers know, then any.
func listen(port int) (net.Listener, error) {
	ports := []int{port}
	if port == 0 {
		ports = []int{1455, 1457, 0}
	}
	var last error
	for _, p := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, last
}

// address returns the issuer's page where the user signs in.
func (l *login) address() string {
	return l.flow.AuthCodeURL(l.state,
		oauth2.S256ChallengeOption(l.verifier),
		oauth2.SetAuthURLParam("id_token_add_organizations", "true"),
		oauth2.SetAuthURLParam("codex_cli_simplified_flow", "true"),
		oauth2.SetAuthURLParam("originator", "codex_cli_rs"))
}

// run serves the browser until the sign-in ends, and returns its error.
func (l *login) run(ctx context.Context, listener net.Listener) error {
	waiting, stop := context.WithCancel(ctx)
	server := &http.Server{
		Handler:           l.handler(waiting, listener.Addr().(*net.TCPAddr).Port),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it ends with the listener
	}()
	r, err := l.wait(ctx)
	if err == nil {
		err = l.finish(ctx, r.code)
	}
	stop()
	if r.outcome != nil {
		r.outcome <- err
		last, cancel := context.WithTimeout(ctx, farewell)
		_ = server.Shutdown(last) // a page not sent by then is lost
		cancel()
	}
	_ = server.Close()
	<-served
	return err
}

// wait waits for the browser's reply.
func (l *login) wait(ctx context.Context) (reply, error) {
	timeout := time.NewTimer(loginTimeout)
	defer timeout.Stop()
	select {
	case r := <-l.answer:
		return r, r.err
	case <-timeout.C:
		return reply{}, ErrTimeout
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// finish turns the code into tokens and keeps them.
func (l *login) finish(ctx context.Context, code string) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	got, err := l.flow.Exchange(l.keeper.client(ctx), code, oauth2.VerifierOption(l.verifier))
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrCancelled) {
			return cause
		}
		return worded(err)
	}
	f := &file{}
	f.take(got)
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	if errors.Is(context.Cause(ctx), ErrCancelled) { // by a newer key or a logout
		return ErrCancelled
	}
	return f.save(l.keeper.home)
}

// handler answers the browser.
func (l *login) handler(ctx context.Context, port int) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/callback", func(w http.ResponseWriter, r *http.Request) {
		// Another host is a foreign site whose name resolves to loopback (DNS rebinding).
		host := r.Host
		if host != fmt.Sprintf("localhost:%d", port) && host != fmt.Sprintf("127.0.0.1:%d", port) {
			page(w, http.StatusForbidden, "Not here.")
			return
		}
		q := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.state)) != 1 {
			page(w, http.StatusBadRequest, "This address belongs to another login. Use the newest one.")
			return
		}
		answer := reply{code: q.Get("code"), outcome: make(chan error, 1)}
		if answer.code == "" {
			answer.err = errors.New("auth: the issuer sent no code")
			if code := printable(q.Get("error")); code != "" {
				answer.err = fmt.Errorf("auth: the issuer refused: %s", code)
			}
		}
		select {
		case l.answer <- answer:
		case <-ctx.Done():
			page(w, http.StatusGone, "This login has ended.")
			return
		case <-r.Context().Done():
			return
		}
		if err := <-answer.outcome; err != nil {
			page(w, http.StatusBadGateway, "You are not signed in. The program that sent you here shows the reason.")
			return
		}
		page(w, http.StatusOK, "You are signed in. You can close this page.")
	})
	return mux
}

func page(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the code
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html><title>Codex</title><p>%s</p>\n", text)
}
