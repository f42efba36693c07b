//go:build cluster

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// operator follows codexserver/gateway/README.md on this machine. Each of its machines is a folder with
// an etc, a var and a usr of its own, with a shell that lasts for the whole page, and with an address that
// has the machine's name.
type operator struct {
	*page
	top   string
	hosts string // stands for /etc/hosts
	model *providertest.Server
	ports map[string]string // the address on this machine, by machine and address of the page
	init  *httptest.Server  // does what systemd does

	mu    sync.Mutex
	units map[string]*unit // by machine and name
	all   []*process       // of all units, also those that have ended
}

// unit is a service of systemd.
type unit struct {
	command []string
	f       folders
	running *process // nil when it is stopped
}

// shims are the programs that a test cannot run as they are, and what stands for them.
var shims = map[string]string{
	"apt-get": `exit 0`, // the gate has installed the packages
	// The user of the test owns everything.
	"useradd": `exit 0`, "groupadd": `exit 0`,
	// The machines are folders.
	"ssh": `host=${2%%.*}; shift 2; export INIT=${INIT%/*}/${host#m}; cd "$TOP/$host/root" && exec "${@//"$TOP/m1/"/"$TOP/$host/"}"`,
	"scp": `last=${*: -1}; host=${last%%.*}; cp "${@:1:$#-1}" "$TOP/$host/root/${last#*:}"`,
	// Its units are those of the page and of docs/operate/operating.md.
	"systemctl": `exec curl -sS --fail-with-body --data "$*" "$INIT"`,
}

// standIns returns the [page.substitutions].
func (o *operator) standIns(machine int) []string {
	root := filepath.Join(o.top, "m"+strconv.Itoa(machine))
	pairs := []string{
		// The repository is not published, so take this one.
		"git clone https://github.com/codexmcp/codexmcp && cd codexmcp", "cd '" + o.checkout() + "'",
		// The page has the versions of the tests: the first one is a dependency of theirs, and the step install has the second one.
		"GOBIN=/usr/local/bin go install github.com/nats-io/nats-server/v2@" + o.version("codexserver/gateway/go.mod", `nats-server/v2 (\S+)`), "go build -C codexserver/gateway -o " + root + "/usr/local/bin/ github.com/nats-io/nats-server/v2",
		"GOBIN=/usr/local/bin go install github.com/nats-io/natscli/nats@" + o.version(".ci/run", `natscli/nats@(\S+)`), "cp '" + natsProgram() + "' " + root + "/usr/local/bin/",
		"export N=1 ", "export N=" + strconv.Itoa(machine) + " ",
		`sk-…\n`, `sk-x\nOPENAI_BASE_URL=` + o.model.BaseURL() + `\nCODEX_BIN=/no/codex\n`,
		"sk-…", "sk-x OPENAI_BASE_URL=" + o.model.BaseURL() + " CODEX_BIN=/no/codex",
		// The user of the test owns everything.
		"install -o nats ", "install ", "install -g codex-mcp ", "install ", "-o codex-team -g codex-team ", "", "-o codex-$1 -g codex-$1 ", "", "-o codex-$1 ", "",
		// A lease shorter than 15 seconds saves the time of the test.
		"roles = [\"node\"]\n", "roles = [\"node\"]\nlease = \"3s\"\n",
		// Another server of this machine may have the port.
		"codex-mcp-gateway 2>trial.log", "codex-mcp-gateway --listen " + o.port(1, ":4517") + " 2>trial.log",
		"https://codex.example.com/", "https://" + o.port(1, ":443") + "/",
		"0.0.0.0:4222", "0.0.0.0:" + o.number(machine, ":4222"), "0.0.0.0:6222", "0.0.0.0:" + o.number(machine, ":6222"),
		"advertise: m$N.example.com:6222", "advertise: m$N.example.com:" + o.number(machine, ":6222"),
		"m$N.example.com:4520", "m$N.example.com:" + o.number(machine, ":4520"),
		"/srv/", o.top + "/srv/", // all machines share it
		" /etc/", " " + root + "/etc/", "\"/etc/", "\"" + root + "/etc/", ">/etc/", ">" + root + "/etc/", "/var/", root + "/var/", "/usr/local/", root + "/usr/local/",
	}
	for n := 1; n <= natsServers; n++ {
		for _, port := range []string{":4222", ":6222"} {
			name := fmt.Sprintf("m%d.example.com:", n)
			pairs = append(pairs, name+port[1:], name+o.number(n, port))
		}
	}
	for _, port := range []string{":4517", ":4518", ":4519", ":8222"} {
		pairs = append(pairs, "127.0.0.1"+port, o.port(machine, port))
	}
	return pairs
}

// natsProgram returns the path of the program nats, which the step install has installed.
func natsProgram() string { return filepath.Join(os.Getenv("CODEX_NPM"), "nats") }

// port returns the address on this machine for a port of a machine.
func (o *operator) port(machine int, port string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := strconv.Itoa(machine) + port
	if o.ports[key] == "" {
		o.ports[key] = freeAddress(o.t)
	}
	return o.ports[key]
}

// number returns the number of that port alone.
func (o *operator) number(machine int, port string) string {
	_, number, _ := net.SplitHostPort(o.port(machine, port)) // freeAddress has made it
	return number
}

// host returns the address of a machine, which has its name.
func (o *operator) host(machine int) string { return fmt.Sprintf("127.0.0.%d", 10+machine) }

// named returns a command that finds the machines by their names.
func (o *operator) named(command ...string) []string {
	unshare := []string{"unshare", "--mount"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	return append(append(unshare, "sh", "-ec", `mount --bind "$0" /etc/hosts && exec "$@"`, o.hosts), command...)
}

// newOperator makes the machines.
func newOperator(t *testing.T) *operator {
	t.Helper()
	enclosuretest.Need(t)
	o := &operator{top: boxtest.Outside(t), ports: map[string]string{}, units: map[string]*unit{}}
	o.page = &page{t: t, substitutions: o.standIns, used: map[string]bool{}, shells: map[int]*shell{}}
	o.model = providertest.New(fileModel())
	t.Cleanup(o.model.Close)
	o.init = httptest.NewServer(http.HandlerFunc(o.systemctl))
	t.Cleanup(o.init.Close)
	bin := filepath.Join(o.top, "bin")
	write := func(file, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range shims {
		write(filepath.Join(bin, name), "#!/bin/bash\n"+script+"\n", 0o700)
	}
	names := "127.0.0.1 localhost\n"
	for n := 1; n <= natsServers; n++ {
		names += fmt.Sprintf("%s m%d.example.com\n", o.host(n), n)
	}
	o.hosts = filepath.Join(o.top, "hosts")
	write(o.hosts, names, 0o644)
	for n := 1; n <= natsServers; n++ {
		root := filepath.Join(o.top, "m"+strconv.Itoa(n))
		for _, dir := range []string{"root", "etc/systemd/system", "etc/haproxy", "var/lib/codex-mcp", "var/backups", "usr/local/bin"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		o.shells[n] = o.bash(n, root, bin)
	}
	// What the page says in words: the configuration of HAProxy, with a certificate.
	etc := filepath.Join(o.top, "m1", "etc")
	write(filepath.Join(etc, "haproxy", "haproxy.cfg"), strings.Replace(o.substitute(1, o.fenced("haproxy")[0]), "bind :443", "bind "+o.port(1, ":443"), 1), 0o600)
	// Curl wants a certificate with the name of an issuer.
	certify := exec.Command("bash", "-c", `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=codex.example.com \
		-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem && cat cert.pem key.pem >codex-mcp.pem`)
	certify.Dir = filepath.Join(etc, "haproxy")
	if out, err := certify.CombinedOutput(); err != nil {
		t.Fatalf("openssl: %v\n%s", err, out)
	}
	return o
}

// bash starts the shell of a machine.
func (o *operator) bash(n int, root, bin string) *shell {
	argv := o.named("bash", "-e")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(root, "root")
	certificates := filepath.Join(o.top, "m1", "etc", "haproxy", "codex-mcp.pem")
	cmd.Env = []string{
		"PATH=" + bin + ":" + filepath.Join(root, "usr/local/bin") + ":" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "TOP=" + o.top, "INIT=" + o.init.URL + "/" + strconv.Itoa(n), "TERM=xterm",
		"GOCACHE=" + goEnv(o.t, "GOCACHE"), "GOMODCACHE=" + goEnv(o.t, "GOMODCACHE"), "GOFLAGS=-mod=readonly -buildvcs=false", "GOTOOLCHAIN=local",
		"CURL_CA_BUNDLE=" + certificates, "SSL_CERT_FILE=" + certificates, "LANG=C.UTF-8", "XDG_CONFIG_HOME=" + cmd.Dir,
	}
	return o.newShell(cmd)
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// systemctl does what systemctl does with units, on the machine that the path names.
func (o *operator) systemctl(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	machine, failed := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
	if err != nil || failed != nil {
		http.Error(w, "invalid", http.StatusBadRequest)
		return
	}
	words := slices.DeleteFunc(strings.Fields(string(text)), func(word string) bool { return strings.HasPrefix(word, "--") || word == "KILL" })
	for _, name := range words[1:] {
		if err := o.act(machine, words[0], name); err != nil {
			http.Error(w, fmt.Sprintf("%s: %v", text, err), http.StatusInternalServerError)
			return
		}
	}
}

// act carries out a command of systemctl for a unit.
func (o *operator) act(machine int, verb, name string) error {
	key := strconv.Itoa(machine) + " " + name
	o.mu.Lock()
	u := o.units[key]
	o.mu.Unlock()
	if u == nil {
		var err error
		if u, err = o.unit(machine, name); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.units[key] = u
	switch verb {
	case "reload":
		return u.running.cmd.Process.Signal(syscall.SIGHUP)
	case "kill":
		if err := u.running.cmd.Process.Kill(); err != nil {
			return err
		}
		<-u.running.exited // and Restart= starts it again
	case "stop", "restart":
		if u.running != nil {
			if err := u.running.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				return err
			}
			<-u.running.exited
			u.running = nil
		}
		if verb == "stop" {
			return nil
		}
	case "enable", "start":
	default:
		return fmt.Errorf("%q is unknown", verb)
	}
	argv := o.named(u.command...)
	u.running = launch(o.t, u.f, exec.Command(argv[0], argv[1:]...))
	o.all = append(o.all, u.running)
	return nil
}

// execStart finds the last command of a unit.
var execStart = regexp.MustCompile(`(?m)^ExecStart=(/usr/local/bin/codex-mcp-gateway .*|.*nats-(?:server|watchdog).*)$`)

// unit reads a unit: that of NATS as the page has written it, and those of the gateway from
// docs/operate/operating.md.
func (o *operator) unit(machine int, name string) (*unit, error) {
	root := filepath.Join(o.top, "m"+strconv.Itoa(machine))
	u := &unit{f: folders{cwd: root, user: filepath.Join(root, "root")}}
	if name == "haproxy" {
		u.command = []string{"haproxy", "-db", "-f", filepath.Join(root, "etc", "haproxy", "haproxy.cfg")}
		return u, nil
	}
	file, env := filepath.Join(root, "etc", "systemd", "system", name+".service"), []byte(nil)
	if instance, ok := strings.CutPrefix(name, "codex-mcp@"); ok {
		file = filepath.Join(o.checkout(), "docs", "operate", "operating.md")
		u.f.home = filepath.Join(root, "var", "lib", "codex-mcp", instance)
		var err error
		if env, err = os.ReadFile(filepath.Join(root, "etc", "codex-mcp", instance+".env")); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	start := execStart.FindSubmatch(text)
	if start == nil {
		return nil, fmt.Errorf("%s has no ExecStart", file)
	}
	u.command = append([]string{"env"}, strings.Fields(string(env))...)
	line := strings.Replace(string(start[1]), "/usr/local/", root+"/usr/local/", 1)
	for word := range strings.FieldsSeq(strings.ReplaceAll(line, root+root, root)) {
		for setting := range strings.FieldsSeq(string(env)) {
			key, value, _ := strings.Cut(setting, "=")
			word = strings.ReplaceAll(word, "${"+key+"}", value)
		}
		u.command = append(u.command, word)
	}
	return u, nil
}

// TestClusterReadme runs every command of codexserver/gateway/README.md in the order of the page.
func TestClusterReadme(t *testing.T) {
	if _, err := os.Stat(natsProgram()); err != nil {
		t.Fatalf("%v: set CODEX_NPM to the folder in which .ci/run install has put it", err)
	}
	o := newOperator(t)
	o.follow(func(string) {})
	o.silence()
	o.handshakes()
}

// handshakes checks that each certificate of the page has the names by which others connect: NATS logs
// what fails, and tries again for ever.
func (o *operator) handshakes() {
	o.mu.Lock()
	defer o.mu.Unlock()
	logs := 0
	for _, p := range o.all {
		for line := range strings.Lines(p.errors()) {
			if strings.Contains(line, "Server is ready") {
				logs++
			}
			if strings.Contains(line, "[ERR]") && strings.Contains(line, "TLS") || strings.Contains(line, "x509") {
				o.t.Errorf("a certificate does not fit: %s", line)
				break
			}
		}
	}
	if logs < natsServers {
		o.t.Errorf("the logs of %d servers were read", logs)
	}
}

// silence stops NATS, as the loss of a network does: nobody is told. The fronts and the nodes are not
// ready then, and say why; they are healthy.
func (o *operator) silence() {
	o.t.Helper()
	signal := func(sig os.Signal) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for n := 1; n <= natsServers; n++ {
			if err := o.units[strconv.Itoa(n)+" nats"].running.cmd.Process.Signal(sig); err != nil {
				o.t.Error(err)
			}
		}
	}
	get := func(port, path string) (int, string) {
		answer, err := http.Get("http://" + o.port(1, port) + path)
		if err != nil {
			return 0, ""
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			o.t.Error(err)
		}
		return answer.StatusCode, string(text)
	}
	all := func(want int, text string) func() bool {
		return func() bool {
			return !slices.ContainsFunc([]string{":4517", ":4518", ":4519"}, func(port string) bool {
				status, got := get(port, "/readyz")
				return status != want || !strings.HasPrefix(got, text)
			})
		}
	}
	until(o.t, "a process is not ready at first", all(http.StatusOK, "ready"))
	signal(syscall.SIGSTOP)
	until(o.t, "a process is ready without NATS", all(http.StatusServiceUnavailable, "cut off from NATS, which has not answered for "))
	for _, port := range []string{":4517", ":4519"} {
		if status, _ := get(port, "/healthz"); status != http.StatusOK {
			o.t.Errorf("the health at %s is %d", port, status)
		}
	}
	signal(syscall.SIGCONT)
	until(o.t, "a process does not become ready again", all(http.StatusOK, "ready"))
}
