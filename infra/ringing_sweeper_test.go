package infra

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/localtest"
	"github.com/pawl-lock/pawl/localtest/gateway"
	"github.com/pawl-lock/pawl/pkg/lease"
	"github.com/pawl-lock/pawl/pkg/lease/dynamolease"
)

func TestTheAlarmsOfTheSweeperRingForTheirCauses(t *testing.T) {
	_, x := strong()
	function, f := x.one(t, "AWS::Lambda::Function")
	invocation := func(name string) string { return metricKey("AWS/Lambda", name, "FunctionName=<"+function+">") }
	// sweep is one run, in a period of its own.
	sweep := func(t *testing.T, c *cloudWatch, e environment, limit time.Duration, env ...string) {
		c.period()
		var log bytes.Buffer
		l := &gateway.Lambda{Bootstrap: compiled(t, "sweeper"), Env: append(variables(t, f, e), env...), Timeout: limit, Log: &log}
		_, err := l.Invoke(t.Context(), fmt.Appendf(nil, `{"time":%q}`, time.Now().UTC().Format(time.RFC3339)))
		_ = l.Close()
		c.put(invocation("Invocations"), 1)
		if err != nil {
			c.put(invocation("Errors"), 1)
		}
		for line := range strings.Lines(log.String()) {
			if strings.HasPrefix(line, "{") {
				c.line(line)
			}
		}
	}
	for name, c := range map[string]struct {
		cause func(*testing.T, *cloudWatch)
		rings string
	}{
		"nothing": {func(t *testing.T, c *cloudWatch) {
			e := newTable(t)
			sweep(t, c, e, time.Minute)
			sweep(t, c, e, time.Minute)
		}, ""},
		"it fails": {func(t *testing.T, c *cloudWatch) {
			sweep(t, c, environment{newTable(t).endpoint, "missing"}, time.Minute)
			sweep(t, c, environment{newTable(t).endpoint, "missing"}, time.Minute)
		}, "Errors"},
		"nobody runs it": {func(t *testing.T, c *cloudWatch) {
			sweep(t, c, newTable(t), time.Minute)
			c.period()
			c.period()
		}, "NotRunning"},
		"there is more to do than it can": {func(t *testing.T, c *cloudWatch) {
			e := newTable(t)
			began := time.Now().Add(-25 * time.Hour)
			fill(t, e, 250, map[string]types.AttributeValue{
				dynamolease.KeyAttribute: &types.AttributeValueMemberS{Value: dynamolease.SweeperKey},
				"began":                  &types.AttributeValueMemberN{Value: strconv.FormatInt(began.UnixMilli(), 10)},
			})
			sweep(t, c, e, time.Minute) // ends the old pass
			if c.rings(x.of("AWS::CloudWatch::Alarm")[behindID(t, x)]) {
				t.Error("a pass that came to its end is too slow")
			}
			fill(t, e, 0, map[string]types.AttributeValue{
				dynamolease.KeyAttribute: &types.AttributeValueMemberS{Value: dynamolease.SweeperKey},
				"began":                  &types.AttributeValueMemberN{Value: strconv.FormatInt(began.UnixMilli(), 10)},
			})
			sweep(t, c, e, 6500*time.Millisecond, "SWEEP_RATE=1") // one or two pages of three
		}, "Behind"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &cloudWatch{TB: t}
			c.cause(t, w)
			if got := strings.Join(w.ringing(x), " "); got != c.rings {
				t.Errorf("%q ring, want %q", got, c.rings)
			}
		})
	}
	if n := len(x.of("AWS::CloudWatch::Alarm")); n != 3 {
		t.Errorf("there are %d alarms", n)
	}
}

func behindID(t *testing.T, x template) string {
	for id := range x.of("AWS::CloudWatch::Alarm") {
		if alarmName(id) == "Behind" {
			return id
		}
	}
	t.Fatal("there is no such alarm")
	return ""
}

// fill puts so many items that are no locks into a table, and one more.
func fill(t *testing.T, e environment, n int, one map[string]types.AttributeValue) {
	t.Helper()
	client := dynamolease.NewClientFrom(localtest.DynamoDBForTest(t).Options())
	items := []map[string]types.AttributeValue{one}
	for i := range n {
		items = append(items, map[string]types.AttributeValue{dynamolease.KeyAttribute: &types.AttributeValueMemberS{Value: "a#" + lease.NewID() + strconv.Itoa(i)}})
	}
	for _, item := range items {
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &e.table, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
}
