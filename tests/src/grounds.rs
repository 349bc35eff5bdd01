//! TEMP
/// x
pub async fn embedded_client() -> kube::Client {
    let kc = kube::config::Kubeconfig::read_from("/tmp/ref/kubeconfig").unwrap();
    kube::Client::try_from(kube::Config::from_custom_kubeconfig(kc, &Default::default()).await.unwrap()).unwrap()
}
