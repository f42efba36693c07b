package hosts_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/hosts"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// echo is an internet whose hosts echo what they get.
func echo(addrs ...string) *hosts.Proxy {
	return &hosts.Proxy{
		Resolve: func(context.Context, string) (all []netip.Addr, err error) {
			for _, a := range addrs {
				all = append(all, netip.MustParseAddr(a))
			}
			return all, nil
		},
		Dial: func(_ context.Context, _, to string) (net.Conn, error) {
			if strings.HasPrefix(to, "93.184.215.9:") {
				return nil, errors.New("nobody is there")
			}
			near, far := net.Pipe()
			go func() {
				fmt.Fprintf(far, "from %s: ", to)
				_, _ = io.Copy(far, far)
				far.Close()
			}()
			return near, nil
		},
		Upstream: func(*http.Request) (*url.URL, error) { return nil, nil },
	}
}

// open serves a connection of the command's, which sends text.
func open(t *testing.T, n *hosts.Network, text string) net.Conn {
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		n.Serve(ctx, far)
		far.Close()
		close(done)
	}()
	t.Cleanup(func() { near.Close(); cancel(); far.Close(); <-done })
	go func() { _, _ = io.WriteString(near, text) }()
	return near
}

// status is the first line of what a connection gets.
func status(c net.Conn) string {
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimRight(line, "\r\n")
}

func connect(host string) string {
	return "CONNECT " + host + ":443 HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
}

// TestRequests has what a command may say to the proxy. Only what begins with 200 reaches a host, and is resolved. TestHost of
// package decide has more that is no name.
func TestRequests(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 50) + "." + strings.Repeat("b", 49)
	for request, want := range map[string]string{
		connect("one.example.com"):                                                "200 Connection established",
		connect("ONE.Example.com."):                                               "200 Connection established", // the same host
		"CONNECT one.example.com:443 HTTP/1.0\r\n\r\n":                            "200 Connection established",
		"CONNECT one.example.com:443 HTTP/1.1\r\nHost: other.example.com\r\n\r\n": "200 Connection established", // what counts is the first line
		connect("two.example.com"):                                                "403 codex-mcp: two.example.com was refused: the user said no",
		connect("xn--ls8h.example.com"):                                           "403 codex-mcp: xn--ls8h.example.com was refused: the user said no",
		"CONNECT one.example.com:80 HTTP/1.1\r\n\r\n":                             "403 codex-mcp: one.example.com was refused: only port 443 is possible from the sandbox",
		"CONNECT one.example.com:0443 HTTP/1.1\r\n\r\n":                           "403 codex-mcp: one.example.com was refused: only port 443 is possible from the sandbox",
		"GET http://one.example.com/ HTTP/1.1\r\nHost: one.example.com\r\n\r\n":   `403 codex-mcp: "one.example.com" was refused: only HTTPS is possible from the sandbox`,
		"CONNECT one.example.com HTTP/1.1\r\n\r\n":                                `403 codex-mcp: "one.example.com" was refused: want a host and a port`,
		connect("one.exàmple.com"):                                                `403 codex-mcp: "one.ex\u00e0mple.com" was refused: not the name of a host in ASCII`,
		connect("evil.com\u202ecom.example"):                                      `403 codex-mcp: "evil.com\u202ecom.example" was refused: not the name of a host in ASCII`,
		connect(long):                                                             "403 codex-mcp: " + long + " was refused: the user said no",
		connect(long + "b"):                                                       `403 codex-mcp: "` + long + `" was refused: a name of more than 100 characters`,
		connect("93.184.215.14"):                                                  `403 codex-mcp: "93.184.215.14" was refused: want a name, and no address`,
		connect("[::1]"):                                                          `403 codex-mcp: "::1" was refused: not the name of a host in ASCII`,
		"\x16\x03\x01\x02\x00 a handshake \r\n\r\n":                               "400 codex-mcp: not a request to an HTTP proxy",
		"CONNECT one.example.com:443 HTTP/1.1\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n": "400 codex-mcp: not a request to an HTTP proxy",
		"SSH-2.0-x\r\n\r\n": "400 codex-mcp: not a request to an HTTP proxy",
	} {
		p, resolved := echo("93.184.215.14"), 0
		resolve := p.Resolve
		p.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) { resolved++; return resolve(ctx, host) }
		n := p.Network(t.Context(), allow("one.example.com"))
		must.Equal(t, fmt.Sprintf("%.60q", request), "HTTP/1.1 "+want, status(open(t, n, request)))
		n.Close()
		must.Equal(t, "resolved", strings.HasPrefix(want, "200"), resolved > 0)
	}
}

// TestAddresses resolves an allowed name. One forbidden address refuses it: a name that leads to two may lead to either.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for addrs, want := range map[string]bool{
		"93.184.215.14": true, "2606:2800:21f::1": true, "93.184.215.14 2606:2800:21f::1": true, "::ffff:93.184.215.14": true,
		"64:ff9b::5db8:d70e": true, "93.184.215.9 93.184.215.14": true, // nobody is at the first
		"127.0.0.1": false, "127.255.255.254": false, "0.0.0.0": false, "::": false, "::1": false, "::ffff:127.0.0.1": false,
		"10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "169.254.169.254": false, "100.100.100.200": false,
		"192.0.0.192": false, "168.63.129.16": false, "198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false,
		"fe80::1": false, "fe80::1%eth0": false, "2606:2800:21f::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false,
		"64:ff9b::7f00:1": false, "64:ff9b:1::7f00:1": false, "2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false, "::127.0.0.1": false,
		"93.184.215.14 127.0.0.1": false, "93.184.215.14 fd00::1": false,
	} {
		n := echo(strings.Fields(addrs)...).Network(t.Context(), allow("one.example.com"))
		got := status(open(t, n, connect("one.example.com")))
		if want != strings.Contains(got, " 200 ") || !want && !strings.Contains(got, "it leads to an address of this machine") {
			t.Errorf("%s: %s", addrs, got)
		}
		_, refused := n.Close()
		must.Equal(t, addrs+": a refusal", !want, len(refused) == 1)
	}
	own := must.Get(net.InterfaceAddrs())(t)
	for _, a := range own {
		ip, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		n := echo(ip.String()).Network(t.Context(), allow("one.example.com"))
		if got := status(open(t, n, connect("one.example.com"))); strings.Contains(got, " 200 ") {
			t.Errorf("this machine's %s: %s", a, got)
		}
		n.Close()
	}
}

// TestRebinding changes the address between two lookups. What is dialled is what was looked at.
func TestRebinding(t *testing.T) {
	t.Parallel()
	p := echo()
	lookups, dial := 0, p.Dial
	p.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		if lookups++; lookups == 1 {
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	var dialed []string
	p.Dial = func(ctx context.Context, network, to string) (net.Conn, error) {
		dialed = append(dialed, to)
		return dial(ctx, network, to)
	}
	n := p.Network(t.Context(), allow("one.example.com"))
	must.Equal(t, "first", "HTTP/1.1 200 Connection established", status(open(t, n, connect("one.example.com"))))
	if got := status(open(t, n, connect("one.example.com"))); !strings.Contains(got, "403") {
		t.Error(got)
	}
	n.Close()
	must.Equal(t, "dialled", "[93.184.215.14:443]", fmt.Sprint(dialed))
}

// TestWaiting has programs that do not wait for an answer, and try again.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"": "HTTP/1.1 200 Connection established", "no": "HTTP/1.1 403 codex-mcp: one.example.com was refused: no"} {
		synctest.Test(t, func(t *testing.T) {
			questions, dialled, p := 0, 0, echo("93.184.215.14")
			dial := p.Dial
			p.Dial = func(ctx context.Context, network, to string) (net.Conn, error) {
				dialled++
				return dial(ctx, network, to)
			}
			n := p.Network(t.Context(), func(ctx context.Context, host string) string {
				questions++
				select {
				case <-time.After(40 * time.Second):
				case <-ctx.Done():
					return "the command has ended"
				}
				return answer
			})
			for range 5 {
				c := open(t, n, connect("one.example.com"))
				time.Sleep(5 * time.Second)
				c.Close()
			}
			patient := open(t, n, connect("one.example.com"))
			begun := time.Now()
			must.Equal(t, "the answer", want, status(patient))
			must.Equal(t, "waited", 15*time.Second, time.Since(begun))
			must.Equal(t, "later", want, status(open(t, n, connect("one.example.com"))))
			must.Equal(t, "questions", 1, questions)
			used, refused := n.Close()
			if answer == "" {
				must.Equal(t, "used", "[one.example.com] []", fmt.Sprint(used, refused))
				must.Equal(t, "dialled", 2, dialled) // not for who has left
			} else {
				must.Equal(t, "refused", "[] [{one.example.com no true}]", fmt.Sprint(used, refused))
			}
		})
	}
}

// TestIdle opens a connection an hour before its request, and one that never ends its request.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := echo("93.184.215.14").Network(t.Context(), allow("one.example.com"))
		idle, slow := open(t, n, ""), open(t, n, "CONNECT one")
		begun := time.Now()
		must.Equal(t, "a slow one", "HTTP/1.1 400 codex-mcp: not a request to an HTTP proxy", status(slow))
		must.Equal(t, "its time", 30*time.Second, time.Since(begun))
		time.Sleep(time.Hour)
		go func() { _, _ = io.WriteString(idle, connect("one.example.com")) }()
		must.Equal(t, "an idle one", "HTTP/1.1 200 Connection established", status(idle))
		n.Close()
	})
}

// TestEnd ends a command while its question is open: the question is withdrawn, and nothing is asked any more.
func TestEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		withdrawn := false
		n := echo("93.184.215.14").Network(t.Context(), func(ctx context.Context, host string) string {
			<-ctx.Done()
			withdrawn = true
			return "the command has ended"
		})
		c := open(t, n, connect("one.example.com"))
		synctest.Wait()
		n.Close()
		must.Equal(t, "withdrawn", true, withdrawn)
		must.Equal(t, "the program", "HTTP/1.1 403 codex-mcp: one.example.com was refused: the command has ended", status(c))
		late := echo("93.184.215.14").Network(context.Background(), func(ctx context.Context, host string) string { <-ctx.Done(); return "" })
		t.Cleanup(func() { late.Close() }) // after a program has ended that talks before the answer
		c = open(t, late, connect("one.example.com"))
		synctest.Wait()
		must.Get(io.WriteString(c, "early"))(t)
		synctest.Wait()
		must.Equal(t, "afterwards", "HTTP/1.1 403 codex-mcp: two.example.com was refused: the command has ended", status(open(t, n, connect("two.example.com"))))
	})
}

// TestManyHosts asks for more hosts than a person is asked about at a time, and than are remembered.
func TestManyHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan string, 200)
		n := echo("93.184.215.14").Network(t.Context(), func(ctx context.Context, host string) string {
			asked <- host
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			return "no"
		})
		var all []net.Conn
		for i := range 9 {
			all = append(all, open(t, n, connect(fmt.Sprintf("h%d.example.com", i))))
			synctest.Wait()
		}
		must.Equal(t, "the ninth", "HTTP/1.1 403 codex-mcp: h8.example.com was refused: 8 other hosts wait for an answer", status(all[8]))
		must.Equal(t, "questions", 8, len(asked))
		time.Sleep(time.Minute)
		must.Equal(t, "the ninth later", "HTTP/1.1 403 codex-mcp: h8.example.com was refused: no", status(open(t, n, connect("h8.example.com"))))
		for i := 9; i < 100; i++ {
			status(open(t, n, connect(fmt.Sprintf("h%d.example.com", i))))
		}
		must.Equal(t, "the last", "HTTP/1.1 403 codex-mcp: h100.example.com was refused: the command has asked for 100 hosts", status(open(t, n, connect("h100.example.com"))))
		must.Equal(t, "questions", 100, len(asked))
		_, refused := n.Close()
		must.Equal(t, "refusals that are kept", 100, len(refused))
	})
}

// TestBytes carries bytes, also those that come with the request or before its answer.
func TestBytes(t *testing.T) {
	t.Parallel()
	n := echo("93.184.215.14").Network(t.Context(), func(context.Context, string) string {
		time.Sleep(20 * time.Millisecond) // so that the second part comes meanwhile
		return ""
	})
	defer n.Close()
	near, far := net.Pipe()
	go func() {
		n.Serve(t.Context(), far)
		far.Close()
	}()
	data := bytes.Repeat([]byte("some bytes"), 50_000)
	go func() {
		_, _ = io.WriteString(near, connect("one.example.com")+"early ")
		_, _ = near.Write(data)
	}()
	want := "HTTP/1.1 200 Connection established\r\n\r\nfrom 93.184.215.14:443: early " + string(data)
	got := make([]byte, len(want))
	if n, err := io.ReadFull(near, got); err != nil {
		t.Fatalf("%d bytes: %v", n, err)
	}
	if diff := cmp.Diff(want[:100], string(got[:100])); diff != "" || !bytes.Equal(got, []byte(want)) {
		t.Error(diff)
	}
	near.Close()
}

// TestUpstream goes through the proxy of the server's own environment. The name goes there unresolved.
func TestUpstream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ proxy, answer, want string }{
		{"http://user:p%40ss@proxy.example:3128", "HTTP/1.1 200 OK\r\n\r\n", "200 Connection established"},
		{"http://proxy.example", "HTTP/1.1 407 Who are you\r\n\r\n", "502 codex-mcp: one.example.com cannot be reached: the server's own proxy answered 407"},
		{"http://proxy.example", "nonsense", "502 codex-mcp: one.example.com cannot be reached: the server's own proxy does not answer"},
		{"http://proxy.example", "HTTP/1.1 200 OK\r\n\r\nmore", "502 codex-mcp: one.example.com cannot be reached: the server's own proxy said more than its answer"},
		{"socks5://proxy.example", "", "502 codex-mcp: one.example.com cannot be reached: the server's own proxy is none of HTTP"},
	} {
		p := echo()
		p.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			t.Error("the name was resolved")
			return nil, nil
		}
		p.Upstream = func(r *http.Request) (*url.URL, error) {
			must.Equal(t, "the request", "https://one.example.com", r.URL.String())
			return url.Parse(tt.proxy)
		}
		asked := make(chan *http.Request, 1)
		p.Dial = func(_ context.Context, _, to string) (net.Conn, error) {
			if want := map[bool]string{true: "proxy.example:3128", false: "proxy.example:80"}[strings.Contains(tt.proxy, "3128")]; to != want {
				t.Errorf("dialled %s, want %s", to, want)
			}
			near, far := net.Pipe()
			go func() {
				r, _ := http.ReadRequest(bufio.NewReader(far))
				asked <- r
				_, _ = io.WriteString(far, tt.answer)
				if !strings.Contains(tt.answer, "OK") {
					far.Close()
				}
			}()
			return near, nil
		}
		n := p.Network(t.Context(), allow("one.example.com"))
		must.Equal(t, tt.proxy, "HTTP/1.1 "+tt.want, status(open(t, n, connect("one.example.com"))))
		if tt.answer != "" {
			r := <-asked
			user := map[bool]string{true: "Basic dXNlcjpwQHNz"}[strings.Contains(tt.proxy, "user")]
			must.Equal(t, "the request", "CONNECT one.example.com:443 "+user, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
		}
		n.Close()
	}
}

// allow allows some hosts.
func allow(all ...string) hosts.Decide {
	return func(_ context.Context, host string) string {
		for _, one := range all {
			if one == host {
				return ""
			}
		}
		return "the user said no"
	}
}

// TestOtherNameWithin asks the proxy for one host, and the server behind it for another. SECURITY.md says that this is open.
func TestOtherNameWithin(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "this is "+r.Host+" by "+r.TLS.ServerName) }))
	defer s.Close()
	p := echo("93.184.215.14")
	p.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
	}
	n := p.Network(t.Context(), allow("one.example.com"))
	c := open(t, n, connect("one.example.com"))
	must.Equal(t, "the proxy", "HTTP/1.1 200 Connection established", status(c))
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	within := tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "two.example.com"})
	must.Get(fmt.Fprint(within, "GET / HTTP/1.0\r\nHost: three.example.com\r\n\r\n"))(t)
	got := must.Get(io.ReadAll(within))(t)
	must.Equal(t, "the server", true, strings.HasSuffix(string(got), "this is three.example.com by two.example.com"))
	used, _ := n.Close()
	must.Equal(t, "used", "[one.example.com]", fmt.Sprint(used))
}
