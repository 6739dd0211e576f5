use super::*;
use expect_test::expect;

fn options(replicas: u16, watch: Option<&str>) -> Install {
    Install {
        systems: Vec::new(),
        namespace: "operators".into(),
        image: "example.com/mainstay:1".into(),
        replicas,
        watch: watch.map(str::to_owned),
        output: Output { output: Format::Yaml },
    }
}

fn webapp(options: &Install) -> Vec<Manifest> {
    installed(&[systems::find("webapp", "install").unwrap()], options).unwrap()
}

fn names(objects: &[Manifest]) -> String {
    manifests(objects, Format::Name).unwrap()
}

#[test]
fn what_others_need_comes_first() {
    expect![[r#"
        namespace/operators
        customresourcedefinition.apiextensions.k8s.io/webapps.examples.mainstay.dev
        serviceaccount/mainstay-webapp
        clusterrole.rbac.authorization.k8s.io/mainstay-webapp
        clusterrolebinding.rbac.authorization.k8s.io/mainstay-webapp
        deployment.apps/mainstay-webapp
    "#]]
    .assert_eq(&names(&webapp(&options(1, None))));
}

#[test]
fn replicas_agree_by_leases_and_are_updated_one_by_one() {
    let objects = webapp(&options(3, None));
    let deployment = objects.last().unwrap();
    assert_eq!(deployment["spec"]["strategy"]["type"], "RollingUpdate");
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(*arguments, json!(["run", "webapp", "--serve=0.0.0.0:8080", "--leases=operators"]));
    assert!(names(&objects).contains("role.rbac.authorization.k8s.io/mainstay-webapp-own\n"));
    let alone = webapp(&options(1, None));
    assert_eq!(alone.last().unwrap()["spec"]["strategy"]["type"], "Recreate");
}

#[test]
fn a_system_that_looks_at_one_namespace_has_no_rights_elsewhere() {
    let objects = webapp(&options(1, Some("shops")));
    assert!(!names(&objects).contains("clusterrole"), "{}", names(&objects));
    let role = objects.iter().find(|object| object["kind"] == "Role").unwrap();
    let binding = objects.iter().find(|object| object["kind"] == "RoleBinding").unwrap();
    assert_eq!(
        (&role["metadata"]["namespace"], &binding["metadata"]["namespace"]),
        (&json!("shops"), &json!("shops"))
    );
    assert_eq!(binding["subjects"][0]["namespace"], "operators");
    let arguments = &objects.last().unwrap()["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(arguments.as_array().unwrap().contains(&json!("--namespace=shops")), "{arguments}");
}

#[test]
fn a_deployment_is_allowed_where_pods_are_restricted() {
    let objects = webapp(&options(1, None));
    expect![[r#"
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          labels:
            app.kubernetes.io/component: webapp
            app.kubernetes.io/name: mainstay
          name: mainstay-webapp
          namespace: operators
        spec:
          replicas: 1
          selector:
            matchLabels:
              app.kubernetes.io/component: webapp
              app.kubernetes.io/name: mainstay
          strategy:
            type: Recreate
          template:
            metadata:
              labels:
                app.kubernetes.io/component: webapp
                app.kubernetes.io/name: mainstay
            spec:
              containers:
              - args:
                - run
                - webapp
                - --serve=0.0.0.0:8080
                image: example.com/mainstay:1
                livenessProbe:
                  httpGet:
                    path: /livez
                    port: http
                  periodSeconds: 10
                name: mainstay
                ports:
                - containerPort: 8080
                  name: http
                readinessProbe:
                  httpGet:
                    path: /readyz
                    port: http
                  periodSeconds: 10
                resources:
                  requests:
                    cpu: 10m
                    memory: 64Mi
                securityContext:
                  allowPrivilegeEscalation: false
                  capabilities:
                    drop:
                    - ALL
                  readOnlyRootFilesystem: true
              securityContext:
                runAsNonRoot: true
                runAsUser: 65532
                seccompProfile:
                  type: RuntimeDefault
              serviceAccountName: mainstay-webapp
    "#]]
    .assert_eq(&crate::output::yaml(objects.last().unwrap()).unwrap());
}

#[test]
fn roles_are_the_least() {
    let reach = Reach { namespace: None, leases: Some("operators") };
    let roles = roles(systems::find("webapp", "rbac").unwrap(), reach).unwrap();
    expect![[r#"
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata:
          name: mainstay-webapp
        rules:
        - apiGroups:
          - ""
          resources:
          - configmaps
          - services
          verbs:
          - create
          - delete
          - get
          - list
          - patch
          - watch
        - apiGroups:
          - apps
          resources:
          - deployments
          verbs:
          - create
          - delete
          - get
          - list
          - patch
          - watch
        - apiGroups:
          - events.k8s.io
          resources:
          - events
          verbs:
          - create
          - patch
        - apiGroups:
          - examples.mainstay.dev
          resources:
          - webapps
          verbs:
          - get
          - list
          - watch
        - apiGroups:
          - examples.mainstay.dev
          resources:
          - webapps/status
          verbs:
          - patch
        - apiGroups:
          - examples.mainstay.dev
          resources:
          - webapps/finalizers
          verbs:
          - update
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: Role
        metadata:
          name: mainstay-webapp-own
          namespace: operators
        rules:
        - apiGroups:
          - coordination.k8s.io
          resources:
          - leases
          verbs:
          - get
          - list
          - create
          - update
          - delete
    "#]]
    .assert_eq(&manifests(&roles, Format::Yaml).unwrap());
}

#[test]
fn an_account_is_a_namespace_and_a_name() {
    assert_eq!("a/b".parse(), Ok(Account::new("a", "b")));
    for text in ["a", "a/", "/b", ""] {
        assert!(text.parse::<Account>().is_err(), "{text}");
    }
}
