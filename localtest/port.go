package localtest

import (
	"fmt"
	"net"
)

// onFreePort runs a server on a port that pick thinks is free. Another program
// may take it before the server does; then there is another port.
func onFreePort[S any](pick func() (int, error), run func(port int) (S, error)) (S, error) {
	for attempt := 1; ; attempt++ {
		port, err := pick()
		if err != nil {
			var none S
			return none, err
		}
		s, err := run(port)
		if err == nil || attempt == 5 || free(port) {
			return s, err
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
