package gateway

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

// TestMain lets the test binary be its own bootstrap: with ROLE=bootstrap it
// is a Lambda function, with ROLE=program a program that uses one.
func TestMain(m *testing.M) {
	switch os.Getenv("ROLE") {
	case "bootstrap":
		bootstrap()
	case "program":
		l := &Lambda{Bootstrap: os.Args[0], Env: []string{"ROLE=bootstrap", "GATE=" + os.Getenv("GATE")}}
		_, err := l.Invoke(context.Background(), []byte(`{"do":"gate"}`))
		fmt.Println(err)
	default:
		os.Exit(m.Run())
	}
}

func bootstrap() {
	switch os.Getenv("INIT") {
	case "exit":
		os.Exit(3)
	case "error":
		url := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/init/error"
		_, err := http.Post(url, "", strings.NewReader(`{"errorType":"Runtime.NoTable","errorMessage":"no table"}`))
		fmt.Println(err)
		os.Exit(1)
	case "hang":
		arrive()
		select {}
	}
	lambda.Start(function{})
}

// function does what its event says: in the event itself, or in the query of a
// request.
type function struct{}

func (function) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	var e struct {
		Do, Arg string
		Query   struct{ Do, Arg string } `json:"queryStringParameters"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, err
	}
	pid := []byte(fmt.Sprint(os.Getpid()))
	switch arg := cmp.Or(e.Arg, e.Query.Arg); cmp.Or(e.Do, e.Query.Do) {
	case "pid":
		return pid, nil
	case "gate": // tells the test that it is here, and waits to be let through
		conn := arrive()
		if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
			return nil, err
		}
		fmt.Fprintln(conn, "done")
		return pid, nil
	case "child": // leaves a child behind that holds on to the gate
		conn := arrive().(*net.TCPConn)
		file, err := conn.File()
		if err != nil {
			return nil, err
		}
		child := exec.Command("sleep", "1000")
		child.ExtraFiles = []*os.File{file}
		return pid, errors.Join(child.Start(), conn.Close(), file.Close())
	case "env":
		return json.Marshal(os.Environ())
	case "deadline":
		at, _ := ctx.Deadline()
		return json.Marshal(at)
	case "print":
		for range 100 {
			os.Stdout.WriteString(arg)
			os.Stderr.WriteString(arg + "\n")
		}
		return pid, nil
	case "unfinished":
		os.Stdout.WriteString(arg)
		return pid, nil
	case "return":
		return []byte(arg), nil
	case "error":
		return nil, errors.New("no luck")
	case "panic":
		panic("boom")
	case "exit":
		os.Exit(3)
	}
	return event, nil
}

func arrive() net.Conn {
	conn, err := net.Dial("tcp", os.Getenv("GATE"))
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(conn, os.Getpid())
	return conn
}

// newLambda returns a function that is closed with the test, and the gate it
// arrives at.
func newLambda(t *testing.T, env ...string) (*Lambda, gate) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &Lambda{Bootstrap: self, Env: append([]string{"ROLE=bootstrap", "GATE=" + listener.Addr().String()}, env...)}
	t.Cleanup(func() { l.Close() })
	return l, gate{listener.(*net.TCPListener)}
}

// A gate is where functions wait, so that tests need not.
type gate struct{ listener *net.TCPListener }

// visitor is a function at the gate.
type visitor struct {
	pid  int
	conn net.Conn
	read *bufio.Reader
}

const patience = 30 * time.Second // before a test that waits in vain fails

func (g gate) next(t *testing.T) visitor {
	t.Helper()
	g.listener.SetDeadline(time.Now().Add(patience))
	conn, err := g.listener.Accept()
	if err != nil {
		t.Fatalf("no function came to the gate: %v", err)
	}
	conn.SetDeadline(time.Now().Add(patience))
	v := visitor{conn: conn, read: bufio.NewReader(conn)}
	if _, err := fmt.Fscanln(v.read, &v.pid); err != nil {
		t.Fatal(err)
	}
	return v
}

// pass lets the function through and waits until it says that it is.
func (v visitor) pass(t *testing.T) {
	t.Helper()
	fmt.Fprintln(v.conn)
	if line, err := v.read.ReadString('\n'); line != "done\n" {
		t.Fatalf("behind the gate: %q, %v", line, err)
	}
}

// gone waits until no process holds the other end.
func (v visitor) gone(t *testing.T) {
	t.Helper()
	rest, err := io.ReadAll(v.read)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("process %d is still there: %v", v.pid, err)
	}
	if len(rest) > 0 {
		t.Errorf("process %d said %q", v.pid, rest)
	}
}

func invoke(t *testing.T, l *Lambda, event string) string {
	t.Helper()
	payload, err := l.Invoke(t.Context(), []byte(event))
	if err != nil {
		t.Fatalf("Invoke(%s): %v", event, err)
	}
	return string(payload)
}

// invokeLater invokes in the background.
func invokeLater(t *testing.T, l *Lambda, event string) <-chan answer {
	answered := make(chan answer, 1)
	go func() {
		payload, err := l.Invoke(t.Context(), []byte(event))
		answered <- answer{payload, err}
	}()
	return answered
}
